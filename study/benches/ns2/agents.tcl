# The ends of a bulk transfer as RR-TCP's experiments configure them. Values that differ from ns-2's defaults follow the
# RFCs that reknit implements, or the paper.

Agent/TCP set packetSize_ 1000              ;# ns-2 adds 40 bytes of headers, unless useHeaders_ is false
Agent/TCP set window_ 50                    ;# the paper's maximum window
Agent/TCP set minrto_ 1                     ;# RFC 6298
Agent/TCP set tcpTick_ 0.1                  ;# as usual at the time of the paper
Agent/TCP set rtxcur_init_ 6.0
Agent/TCP set bugFix_ false                 ;# RFC 2581: Reno may retransmit again in the same window
Agent/TCP/Newreno set bugFix_ true          ;# RFC 6582: NewReno may not
Agent/TCP/Newreno set exit_recovery_fix_ 0  ;# its default, RFC 6582 option (2); its option (1) lacks the "+ SMSS"
Agent/TCP/Sack1 set bugFix_ true

# Connect a sender of the variant at node `from` with a sink at node `to`, and return the sender. The transfer starts at
# `start` (in seconds).
proc transfer {ns variant from to start} {
    switch $variant {
        reno    { set tcp [new Agent/TCP/Reno];    set sink [new Agent/TCPSink] }
        newreno { set tcp [new Agent/TCP/Newreno]; set sink [new Agent/TCPSink] }
        sack    { set tcp [new Agent/TCP/Sack1];   set sink [new Agent/TCPSink/Sack1] }
    }
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at $start "$ftp start"
    return $tcp
}

# Print at `seconds` what has happened: packets delivered, data packets sent, retransmitted, timeouts.
proc report {ns tcp seconds} {
    $ns at $seconds "puts \"\[expr \[$tcp set ack_\] + 1\] \[$tcp set ndatapack_\] \[$tcp set nrexmitpack_\] \[$tcp set nrexmit_\]\"; exit 0"
}
