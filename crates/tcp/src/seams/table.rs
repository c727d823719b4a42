//! The table of seams. Each seam is listed once here; everything else that needs the list is generated from it.

/// Calls the macro `$then` with all seams in order. Each has its name in files, whether it takes `one` plug-in or
/// `many` (or none), its trait in [`seams`](mod@crate::seams), and the decision that it makes.
#[macro_export]
macro_rules! seams {
    ($then:ident) => {
        $then! {
            sender {
                loss_detector: one LossDetector, "which segments are lost";
                dup_thresh: one DupThresh, "how many duplicates mean loss";
                postponements: many Postponement, "how much longer to wait";
                spurious_detectors: many SpuriousDetector, "whether the last reduction was spurious";
                undo_limit: one UndoLimit, "which reductions may be undone";
                spurious_response: one SpuriousResponse, "the window after a spurious reduction";
                loss_response: one LossResponse, "the window after a loss";
                fast_recovery: one FastRecovery, "how much fast recovery may send";
                timeout_recovery: one TimeoutRecovery, "what to send after a timeout";
                rto_estimator: one RtoEstimator, "the retransmission timeout";
                limited_transmit: one LimitedTransmit, "new data during disorder";
                congestion_control: one CongestionControl, "growth and reduction of the window";
                send_buffers: many SendBuffer, "how much of the written data is ready to be sent";
            }
            receiver {
                ack_policy: one AckPolicy, "when the receiver acknowledges";
                receive_buffers: many ReceiveBuffer, "how much of the receive buffer is used";
                header_support: many HeaderSupport, "header fields beyond the standard options";
            }
        }
    };
}
