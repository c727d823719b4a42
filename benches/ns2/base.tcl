# The RR-TCP base topology for ns-2.35: one bulk transfer over S1 - R1 - R2 - S2.
#
#   ns base.tcl VARIANT LOSS SEED SECONDS
#
# Prints: packets delivered, data packets sent, retransmitted, timeouts. Values that differ from ns-2's defaults follow
# the RFCs that reknit implements, or the paper.

lassign $argv variant loss seed seconds
ns-random $seed

Agent/TCP set packetSize_ 1000              ;# on the wire: ns-2 adds no headers
Agent/TCP set window_ 50                    ;# the paper's maximum window
Agent/TCP set minrto_ 1                     ;# RFC 6298
Agent/TCP set tcpTick_ 0.1                  ;# as usual at the time of the paper
Agent/TCP set rtxcur_init_ 6.0
Agent/TCP set bugFix_ false                 ;# RFC 2581: Reno may retransmit again in the same window
Agent/TCP/Newreno set bugFix_ true          ;# RFC 6582: NewReno may not
Agent/TCP/Newreno set exit_recovery_fix_ 0  ;# its default, RFC 6582 option (2); its option (1) lacks the "+ SMSS"
Agent/TCP/Sack1 set bugFix_ true

set ns [new Simulator]
foreach node {s1 r1 r2 s2} { set $node [$ns node] }
$ns duplex-link $s1 $r1 10Mb 1ms DropTail
$ns duplex-link $r1 $r2 3.9Mb 50ms DropTail
$ns duplex-link $r2 $s2 10Mb 1ms DropTail
if {$loss > 0} {
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $loss
    $errors ranvar [new RandomVariable/Uniform]
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $r1 $r2
}

switch $variant {
    reno    { set tcp [new Agent/TCP/Reno];    set sink [new Agent/TCPSink] }
    newreno { set tcp [new Agent/TCP/Newreno]; set sink [new Agent/TCPSink] }
    sack    { set tcp [new Agent/TCP/Sack1];   set sink [new Agent/TCPSink/Sack1] }
}
$ns attach-agent $s1 $tcp
$ns attach-agent $s2 $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp

proc finish {} {
    global tcp
    puts "[expr [$tcp set ack_] + 1] [$tcp set ndatapack_] [$tcp set nrexmitpack_] [$tcp set nrexmit_]"
    exit 0
}
$ns at 0.0 "$ftp start"
$ns at $seconds finish
$ns run
