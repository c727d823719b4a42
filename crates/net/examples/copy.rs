//! Sends a file to a server of the kernel, and says how. As root:
//!
//! ```sh
//! nc -l -p 7000 > received &                        # listens on 10.77.0.1 too, once the device exists
//! cargo run --release -p reknit-net --example copy -- FILE 10.77.0.1:7000 [VARIANT]
//! ```

use std::io::Read;
use std::process::ExitCode;

use reknit_net::{Network, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match copy().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("copy: {error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "an example prints")]
async fn copy() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(path), Some(remote)) = (arguments.first(), arguments.get(1)) else {
        return Err("usage: copy FILE ADDRESS:PORT [VARIANT]".into());
    };
    let mut file = std::fs::File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let remote = remote.parse().map_err(|_| format!("{remote}: write ADDRESS:PORT, such as 10.77.0.1:7000"))?;
    let mut builder = Network::builder([10, 77, 0, 2].into()).device("reknit0", [10, 77, 0, 1].into(), 24);
    if let Some(variant) = arguments.get(2) {
        builder = builder.variant(variant)?;
    }
    let network = builder.start()?;
    let mut stream = TcpStream::connect(&network, remote).await?;
    let (mut chunk, mut total) = (vec![0; 1 << 16], 0);
    loop {
        let n = file.read(&mut chunk)?;
        if n == 0 {
            break;
        }
        stream.write_all(&chunk[..n]).await?;
        total += n;
    }
    stream.shutdown().await?;
    stream.read_to_end(&mut Vec::new()).await?; // the server closes when it has everything
    let info = stream.info()?;
    let rtt = info.tcp.srtt.map_or_else(|| "not measured".to_owned(), |rtt| rtt.to_string());
    println!("{total} bytes, round trip {rtt}, {} retransmissions", info.sent.sent.retransmissions());
    Ok(())
}
