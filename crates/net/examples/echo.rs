//! An echo server on reknit's TCP. As root:
//!
//! ```sh
//! cargo run --release -p reknit-net --example echo
//! nc 10.77.0.2 7          # in another terminal
//! ```

use std::process::ExitCode;

use reknit_net::{Network, TcpListener};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match echo().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo: {error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "an example prints")]
async fn echo() -> std::io::Result<()> {
    let kernel = [10, 77, 0, 1].into();
    let network = Network::builder([10, 77, 0, 2].into()).device("reknit0", kernel, 24).start()?;
    let listener = TcpListener::bind(&network, "0.0.0.0:7".parse().expect("an address"))?;
    println!("echo on 10.77.0.2 port 7");
    loop {
        let (stream, peer) = listener.accept().await?;
        tokio::spawn(async move {
            let (mut read, mut write) = stream.into_split();
            match tokio::io::copy(&mut read, &mut write).await {
                Ok(bytes) => println!("{peer}: {bytes} bytes"),
                Err(error) => println!("{peer}: {error}"),
            }
        });
    }
}
