//! Logs of QUIC stacks: all dialects say the same, both ends are joined, and bad input is refused or read as far as it goes.

mod dialects;

use dialects::{all, json_seq, server};
use reknit_trace::qlog::{QlogAnalysis, QlogDirection, Qlogs};
use serde_json::json;

fn analyze(logs: &[&str]) -> QlogAnalysis {
    let mut qlogs = Qlogs::default();
    for (i, log) in logs.iter().enumerate() {
        assert!(Qlogs::is_qlog(log.as_bytes()));
        qlogs.read(log.as_bytes(), &format!("{i}.qlog")).unwrap_or_else(|error| panic!("{error}: {log}"));
    }
    qlogs.report()
}

fn only(analysis: &QlogAnalysis) -> &QlogDirection {
    assert_eq!((analysis.connections, analysis.directions.len()), (1, 1), "{analysis:?}");
    &analysis.directions[0]
}

#[test]
fn all_dialects_say_the_same() {
    for (name, log) in all() {
        let analysis = analyze(&[&log]);
        assert_eq!(analysis.warnings, [""; 0], "{name}");
        let report = only(&analysis);
        assert_eq!((report.group.as_deref(), report.from, report.to), (Some("c0ffee"), "client", "server"), "{name}");
        assert_eq!((report.packets, report.bytes, report.bytes_of_data), (11, 13_200, 11_000), "{name}");
        let lost = (report.declared_lost, report.late, report.not_acknowledged, report.lost);
        assert_eq!(lost, (2, 1, 1, None), "{name}");
        let reasons = (report.by_packet_threshold, report.by_time_threshold, report.by_probe_timeout);
        assert_eq!(reasons, (1, 1, 0), "{name}");
        assert_eq!(report.probe_timeouts, 1, "{name}");
        // Packet 6 was acknowledged before packet 3, which took 47 ms where a round trip is 40 ms.
        let needed = report.thresholds.as_ref().unwrap();
        assert_eq!((needed.packets, needed.behind_max, needed.packet_threshold_99), (1, 3, 4), "{name}");
        assert!((needed.time_threshold_all - 1.175).abs() < 1e-9, "{name}: {needed:?}");
        assert_eq!(report.reordering.late_max_ms, Some(4.0), "{name}");
        let window = &report.window;
        assert_eq!((window.reductions, window.false_reductions, window.without_loss), (2, 1, 0), "{name}");
        let sizes: Vec<_> = window.list.iter().map(|one| (one.before, one.after, one.losses, one.late)).collect();
        assert_eq!(sizes, [(Some(12_000), Some(6_000), 1, 1), (Some(8_000), Some(4_000), 1, 0)], "{name}");
        assert!((report.duration_s - 0.054).abs() < 1e-9, "{name}: {}", report.duration_s);
        assert!((report.round_trip.as_ref().unwrap().least_ms - 40.0).abs() < 1e-9, "{name}");
    }
}

#[test]
fn the_log_of_the_receiver_decides() {
    let arrivals = |with_7: bool| {
        let order = [0, 1, 2, 4, 5, 6, 3, 8, 9, 10, 7];
        let all = order.iter().filter(|number| with_7 || **number != 7);
        let timed: Vec<(f64, u64)> = all.enumerate().map(|(i, number)| (i as f64, *number)).collect();
        server(&timed)
    };
    for (with_7, late, lost) in [(false, 1, 1), (true, 2, 0)] {
        let analysis = analyze(&[&arrivals(with_7), &json_seq()]);
        let report = only(&analysis);
        assert!(report.sender_logged && report.receiver_logged);
        assert_eq!((report.declared_lost, report.late, report.lost), (2, late, Some(lost)));
        assert_eq!((report.missing_numbers, report.reordered()), (Some(lost), late));
        assert_eq!(report.window.false_reductions, late);
    }
    // Without the sender's log, only the order is known.
    let analysis = analyze(&[&arrivals(false)]);
    let report = only(&analysis);
    assert_eq!((report.packets, report.declared_lost, report.reordered()), (10, 0, 1));
    assert!(report.advice[0].to_string().starts_with("log at the sender too"), "{:?}", report.advice);
    // Another connection is not joined.
    let other = arrivals(false).replace("c0ffee", "decaf").replace("\"packet_number\":10", "\"packet_number\":11");
    assert_eq!(analyze(&[&other, &json_seq()]).connections, 2);
}

#[test]
fn what_the_receiver_takes_for_a_duplicate_was_not_lost() {
    let arrivals: Vec<(f64, u64)> =
        [0, 1, 2, 4, 5, 6, 3, 8, 9, 10].iter().map(|number| (*number as f64, *number)).collect();
    let dropped = |number: u64| {
        let header = json!({ "packet_type": "1RTT", "packet_number": number });
        let data = json!({ "header": header, "trigger": "duplicate" });
        format!("{}\n", json!({ "time": 99, "name": "transport:packet_dropped", "data": data }))
    };
    // Packet 7 arrived too late; packet 5 was there already.
    let log = server(&arrivals) + &dropped(7) + &dropped(5);
    let analysis = analyze(&[&json_seq(), &log]);
    let report = only(&analysis);
    assert_eq!((report.declared_lost, report.late, report.not_acknowledged), (2, 1, 1));
    assert_eq!((report.discarded, report.lost, report.duplicated), (Some(1), Some(0), 1));
    let advice: Vec<String> = report.advice.iter().map(ToString::to_string).collect();
    assert!(advice[1].starts_with("make the receiver remember more packet numbers"), "{advice:?}");
}

#[test]
fn without_acks_nothing_is_claimed_about_lateness() {
    let log: String = json_seq().split_inclusive('\n').filter(|line| !line.contains("\"ack\"")).collect();
    let analysis = analyze(&[&log]);
    let report = only(&analysis);
    assert_eq!((report.declared_lost, report.late, report.acks_logged), (2, 0, false));
    assert!(
        analysis.warnings[0].ends_with("which packets that were declared lost were late"),
        "{:?}",
        analysis.warnings
    );
    assert!(
        report.advice[0].to_string().starts_with("log at the receiver too, or log the frames"),
        "{:?}",
        report.advice
    );
    // The receiver's log shows it.
    let arrivals: Vec<(f64, u64)> =
        [0, 1, 2, 4, 5, 6, 3, 8, 9, 10].iter().map(|number| (*number as f64, *number)).collect();
    let joined = analyze(&[&log, &server(&arrivals)]);
    assert_eq!((only(&joined).late, only(&joined).lost), (1, Some(1)));
}

#[test]
fn advice_is_what_would_have_been_enough() {
    let log = json_seq();
    // Packet 7 is late too, by more than 3 round trips.
    let ack = json!({ "frame_type": "ack", "acked_ranges": [[0, 10]] });
    let header = json!({ "packet_type": "1RTT", "packet_number": 90 });
    let data = json!({ "header": header, "frames": [ack] });
    let late = json!({ "time": 180.0, "name": "transport:packet_received", "data": data });
    let analysis = analyze(&[&format!("{log}\u{1e}{late}\n")]);
    let advice = only(&analysis).advice[0].to_string();
    assert!(
        advice.contains("usually 3 packets and 9/8 round trips): 4 packets and 3.23 round trips cover all"),
        "{advice}"
    );
    assert!(advice.contains("docs/guide/quic.md"), "{advice}");
    // What the sender uses, if it says so.
    let set = json!({ "reordering_threshold": 3, "time_threshold": 1.125 });
    let set = json!({ "time": 0, "name": "recovery:parameters_set", "data": set });
    let analysis = analyze(&[&format!("{log}\u{1e}{set}\n\u{1e}{late}\n")]);
    let advice = only(&analysis).advice[0].to_string();
    assert!(advice.contains("now 3 packets and 1.13 round trips"), "{advice}");
}

#[test]
fn paths_have_their_own_numbers_only_with_their_own_acks() {
    let sent = |path: u64, number: u64| {
        let header = json!({ "packet_type": "1RTT", "packet_number": number });
        json!([number, path, "transport", "packet_sent", { "header": header }])
    };
    let ack = |time: u64, frame: serde_json::Value| {
        let header = json!({ "packet_type": "1RTT", "packet_number": time });
        json!([time, 0, "transport", "packet_received", { "header": header, "frames": [frame] }])
    };
    let of_path = json!({ "frame_type": "path_ack", "path_id": 1, "acked_ranges": [[0, 0], [2, 2]] });
    let of_connection = json!({ "frame_type": "ack", "acked_ranges": [[0, 9]] });
    let lost = json!([40, 1, "recovery", "packet_lost", { "packet_type": "1RTT", "packet_number": 1 }]);
    let trace = |events: Vec<serde_json::Value>| {
        let columns = ["relative_time", "path_id", "category", "event", "data"];
        json!({ "qlog_version": "draft-02", "traces": [{ "event_fields": columns, "events": events }] }).to_string()
    };
    // With PATH_ACK, an ACK of packet 1 is about the first path.
    let both = vec![
        sent(0, 1),
        sent(1, 0),
        sent(1, 1),
        sent(1, 2),
        ack(30, of_path),
        lost.clone(),
        ack(50, of_connection.clone()),
    ];
    let report = analyze(&[&trace(both)]);
    assert_eq!((only(&report).declared_lost, only(&report).late), (1, 0));
    // Without it, the connection has moved to another path.
    let moved = vec![sent(0, 0), sent(1, 1), sent(1, 2), lost, ack(50, of_connection)];
    let report = analyze(&[&trace(moved)]);
    assert_eq!((only(&report).declared_lost, only(&report).late), (1, 1));
}

#[test]
fn what_is_wrong_is_named() {
    let event = |name: &str, data: &str| {
        format!("{{\"qlog_version\":\"0.3\",\"trace\":{{}}}}\n{{\"time\":1,\"name\":\"{name}\",\"data\":{data}}}\n")
    };
    let number = event("transport:packet_sent", r#"{"header":{"packet_type":"1RTT","packet_number":"x"}}"#);
    let header = r#"{"packet_type":"1RTT","packet_number":1}"#;
    let frame = r#"{"frame_type":"ack","acked_ranges":[[1,2,3]]}"#;
    let range = event("transport:packet_received", &format!(r#"{{"header":{header},"frames":[{frame}]}}"#));
    let time = number.replace("\"time\":1", "\"time\":\"noon\"").replace("\"x\"", "1");
    let unit = r#"{"traces":[{"configuration":{"time_units":"d"},"events":[[1,"a","packet_lost",{}]]}]}"#;
    for (log, says) in [
        (&*number, "line 2, event 1: transport:packet_sent: packet_number is \"x\"; allowed is a whole number"),
        (&range, "line 2, event 1: transport:packet_received: acked_ranges has [1, 2, 3]; allowed are [first, last]"),
        (&time, "line 2, event 1: its time is \"noon\"; allowed is a number"),
        (unit, "time_units of its trace is \"d\"; allowed are ms, us, ns and s"),
        ("{}", "is JSON, but has no events of qlog; supported is qlog from draft-00 on"),
        (r#"{"connections":[],"qlog_version":"0.1"}"#, "is qlog before draft-00"),
        (r#"{"constants":{},"events":[]}"#, "is a NetLog of Chrome"),
        ("{\"traces\":[{\"events\":[", "ends in line 1, column 22, before the first event"),
        ("{\"traces\":5}", "line 1, column 12: invalid type: integer `5`, expected a list of traces"),
    ] {
        let error = Qlogs::default().read(log.as_bytes(), "a.qlog").unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn what_was_read_before_the_damage_counts() {
    for (name, log) in all() {
        let whole = only(&analyze(&[&log])).clone();
        let end = log.rfind("pto_count").unwrap();
        let analysis = analyze(&[&log[..end]]);
        let [warning] = &analysis.warnings[..] else { panic!("{name}: {:?}", analysis.warnings) };
        assert!(
            warning.contains("0.qlog: the file is damaged, so only the part before the damage was read: "),
            "{warning}"
        );
        let part = only(&analysis);
        assert_eq!((part.declared_lost, part.late, part.probe_timeouts), (2, 1, 0), "{name}");
        assert_eq!(part.window.list, whole.window.list, "{name}");
    }
}

#[test]
fn no_prefix_and_no_changed_byte_causes_a_panic() {
    for (_, log) in all() {
        for end in 0..log.len() {
            let mut qlogs = Qlogs::default();
            if qlogs.read(&log.as_bytes()[..end], "a").is_ok() {
                qlogs.report();
            }
            let mut changed = log.clone().into_bytes();
            changed[end] = b"-9e{[\"\x1e,"[end % 8];
            if let Err(error) = qlogs.read(&changed[..], "a") {
                assert!(!error.to_string().contains('\n'), "{error}");
            } else {
                qlogs.report();
            }
        }
    }
}
