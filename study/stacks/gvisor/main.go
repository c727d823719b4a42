// Serve line feeds without end over gVisor's network stack behind a TUN device, for compare.py.
package main

import (
	"bytes"
	"log"
	"net"
	"net/netip"
	"os/exec"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

func must(err any) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	fd, err := tun.Open("stack0")
	must(err)
	for _, args := range [][]string{{"address", "add", "10.88.0.1/24", "dev", "stack0"}, {"link", "set", "stack0", "up", "mtu", "1500"}} {
		must(exec.Command("ip", args...).Run())
	}
	link, err := fdbased.New(&fdbased.Options{FDs: []int{fd}, MTU: 1500})
	must(err)
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	must(s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack))
	buffers := tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: 4 << 20, Max: 16 << 20}
	must(s.SetTransportProtocolOption(tcp.ProtocolNumber, &buffers))
	must(s.CreateNIC(1, link))
	addr := tcpip.AddrFrom4(netip.MustParseAddr("10.88.0.2").As4())
	must(s.AddProtocolAddress(1, tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: addr.WithPrefix()}, stack.AddressProperties{}))
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	listener, err := gonet.ListenTCP(s, tcpip.FullAddress{Addr: addr, Port: 80}, ipv4.ProtocolNumber)
	must(err)
	// `reknit emulate` waits for a program that listens, and cannot see a stack in user space.
	_, err = net.ListenPacket("udp", "0.0.0.0:9")
	must(err)
	for {
		conn, err := listener.Accept()
		must(err)
		go func() {
			lines := bytes.Repeat([]byte("\n"), 64<<10)
			for {
				if _, err := conn.Write(lines); err != nil {
					return
				}
			}
		}()
	}
}
