# The RR-TCP base topology for ns-2.35 with two paths between R1 and R2, which packets take in turn, in both directions.
#
#   ns two_paths.tcl VARIANT LONGER_MS BACK_MS START SECONDS FORWARD REVERSE SEED [TRACE]
#
# The second path is LONGER_MS longer, and BACK_MS on the way back. The transfer starts at START seconds. FORWARD and REVERSE
# are 0 or 1: the path that the first packet takes. SEED is that of the jitter. Prints: packets delivered, data packets
# sent, retransmitted, timeouts. TRACE is a file for ns-2's trace of the packets that S1 and S2 send and receive, and of the
# sender's window and duplicate ACKs.

source [file join [file dirname [info script]] agents.tcl]
lassign $argv variant longer back start seconds forward reverse seed trace

Agent/TCP set useHeaders_ false             ;# 1000 bytes on the wire
set ns [new Simulator]
# A link between two nodes can exist only once, so each path has a node of its own behind its bottleneck.
foreach node {s1 r1 first second r2 s2} { set $node [$ns node] }
$ns duplex-link $s1 $r1 10Mb 1ms DropTail
foreach {path there home} [list $first 50 50 $second [expr 50 + $longer] [expr 50 + $back]] {
    $ns simplex-link $r1 $path 3.9Mb ${there}ms DropTail
    $ns simplex-link $path $r2 10Gb 0ms DropTail
    $ns simplex-link $r2 $path 3.9Mb ${home}ms DropTail
    $ns simplex-link $path $r1 10Gb 0ms DropTail
}
$ns duplex-link $r2 $s2 10Mb 1ms DropTail

set tcp [transfer $ns $variant $s1 $s2 $start]

# Routes exist once the simulation runs; these replace those of the two routers.
proc in_turn {ns at to first second offset} {
    set classifier [new Classifier/MultiPath]
    set paths [list $first $second]
    foreach path [list [lindex $paths $offset] [lindex $paths [expr 1 - $offset]]] {
        $classifier installNext [[$ns link $at $path] head]
    }
    $at add-route [$to id] $classifier
}
$ns at 0.0 "in_turn $ns $r1 $s2 $first $second $forward; in_turn $ns $r2 $s1 $first $second $reverse"

# Every 50 ms the first links in both directions get a new delay, up to 100 us longer. Otherwise packets often reach R2 at
# exactly the same time: one that takes the long path after its ACK took the short one, and one that takes the short path
# after its ACK took the long one. Which of them is first would depend on how a simulator adds up times.
proc jitter {ns link} {
    [$link link] set delay_ [expr {0.001 + 0.0001 * rand()}]
    $ns at [expr {[$ns now] + 0.05}] "jitter $ns $link"
}
expr {srand($seed)}
foreach link [list [$ns link $s1 $r1] [$ns link $s2 $r2]] { jitter $ns $link }

if {$trace ne ""} {
    set file [open $trace w]
    $ns trace-queue $s1 $r1 $file
    $ns trace-queue $r1 $s1 $file
    $ns trace-queue $r2 $s2 $file
    $ns trace-queue $s2 $r2 $file
    $tcp attach $file
    foreach variable {cwnd_ dupacks_} { $tcp trace $variable }
}
report $ns $tcp $seconds
$ns run
