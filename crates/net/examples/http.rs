//! An HTTP server: hyper on reknit's TCP. It serves the files of a folder. As root:
//!
//! ```sh
//! cargo run --release -p reknit-net --example http -- FOLDER [VARIANT]
//! curl http://10.77.0.2/NAME          # in another terminal
//! ```

use std::convert::Infallible;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use reknit_net::{Network, TcpListener};

/// The file that a request asks for, if it is in the folder.
fn file(folder: &Path, request: &Request<Incoming>) -> Option<Vec<u8>> {
    let name = Path::new(request.uri().path().trim_start_matches('/'));
    let is_inside = name.components().all(|part| matches!(part, Component::Normal(_)));
    is_inside.then(|| std::fs::read(folder.join(name)).ok()).flatten()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("http: {error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "an example prints")]
async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    if !folder.is_dir() {
        return Err(format!("{}: not a folder", folder.display()).into());
    }
    let mut builder = Network::builder([10, 77, 0, 2].into()).device("reknit0", [10, 77, 0, 1].into(), 24);
    if let Some(variant) = arguments.next() {
        builder = builder.variant(&variant)?;
    }
    let network = builder.start()?;
    let listener = TcpListener::bind(&network, "0.0.0.0:80".parse()?)?;
    println!("http://10.77.0.2/ serves {}", folder.display());
    loop {
        let (stream, _) = listener.accept().await?;
        let folder = folder.clone();
        tokio::spawn(async move {
            let serve = service_fn(move |request| {
                let found = file(&folder, &request);
                let status = if found.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
                let mut response = Response::new(Full::new(Bytes::from(found.unwrap_or_default())));
                *response.status_mut() = status;
                async move { Ok::<_, Infallible>(response) }
            });
            // A client that goes away is no failure of the server.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), serve).await;
        });
    }
}
