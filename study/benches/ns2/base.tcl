# The RR-TCP base topology for ns-2.35: one bulk transfer over S1 - R1 - R2 - S2.
#
#   ns base.tcl VARIANT LOSS SEED SECONDS
#
# Prints: packets delivered, data packets sent, retransmitted, timeouts.

source [file join [file dirname [info script]] agents.tcl]
lassign $argv variant loss seed seconds
ns-random $seed

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

set tcp [transfer $ns $variant $s1 $s2 0.0]
report $ns $tcp $seconds
$ns run
