// The RR-TCP base topology for ns-3: one bulk transfer over S1 - R1 - R2 - S2, without loss.
//
//   base SECONDS
//
// Prints the packets delivered. As in ns-2's base.tcl: packets of 1000 bytes, window 50, minimum RTO 1 s, an ACK for each packet.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdlib>
#include <iostream>

using namespace ns3;

int main(int argc, char* argv[])
{
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1000;
    const uint32_t segment = 958; // 1000 with the headers of TCP, IP and PPP.
    const uint32_t window = 50;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(window * segment));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", StringValue("100p"));

    NodeContainer nodes;
    nodes.Create(4);
    InternetStackHelper internet;
    internet.Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer last;
    const char* rates[] = {"10Mbps", "3.9Mbps", "10Mbps"};
    const char* delays[] = {"1ms", "50ms", "1ms"};
    for (int hop = 0; hop < 3; ++hop)
    {
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue(rates[hop]));
        link.SetChannelAttribute("Delay", StringValue(delays[hop]));
        last = addresses.Assign(link.Install(nodes.Get(hop), nodes.Get(hop + 1)));
        addresses.NewNetwork();
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(last.GetAddress(1), 9));
    source.Install(nodes.Get(0));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    ApplicationContainer sinks = sink.Install(nodes.Get(3));
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << DynamicCast<PacketSink>(sinks.Get(0))->GetTotalRx() / segment << std::endl;
    Simulator::Destroy();
    return 0;
}
