//! Consent in the browser: the page is opened, and the answer comes back to a door on this machine that is open for it
//! alone.

use std::time::Duration;

use anyhow::Context;
use futures_util::{StreamExt, stream::FuturesUnordered};
use highwater_sources::gmail::oauth::{Client, Consent, ENTROPY, Redirected, Secret};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::browser;
use crate::{
    args::{AuthArgs, Global},
    config::GmailConfig,
    exit::{Exit, Trouble},
};

/// Time to log in, find the second factor and read the page.
const PATIENCE: Duration = Duration::from_secs(300);
/// Browsers open connections ahead of time and leave some unused.
const VISITS_MAX: usize = 16;
const VISIT_MAX: Duration = Duration::from_secs(20);
const HEAD_MAX: usize = 16 * 1024;

/// Asks the person, and returns the code that stands for their consent.
pub(super) async fn ask(
    global: &Global,
    args: &AuthArgs,
    gmail: &GmailConfig,
    client: &Client,
) -> anyhow::Result<(Consent, Secret)> {
    let door = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen for the browser's answer")?;
    let mut entropy = [0; ENTROPY];
    aws_lc_rs::rand::fill(&mut entropy).ok().context("the system has no random bytes")?;
    let consent = Consent::new(format!("http://127.0.0.1:{}", door.local_addr()?.port()), &entropy);
    let url = consent.url(&gmail.oauth.auth_url, &client.id);
    let redirected = tokio::select! {
        answer = timeout(PATIENCE, answer(&door, &consent)) => answer,
        never = browser::show(&url, !args.no_browser, global.quiet) => never,
    };
    match redirected {
        Ok(Ok(Redirected::Code(code))) => Ok((consent, code)),
        Ok(Ok(Redirected::Denied(error))) => Err(denied(&args.source, &error).into()),
        Ok(Ok(Redirected::Stranger)) => unreachable!("strangers are not waited for"),
        Ok(Err(error)) => Err(error).context("cannot hear the browser's answer"),
        Err(_) => Err(Trouble::new(Exit::Credentials, "nobody consented within 5 minutes")
            .hint(format!("run 'highwater auth {}' again; --no-browser prints the address to open", args.source))
            .into()),
    }
}

fn denied(source: &str, error: &str) -> Trouble {
    Trouble::new(Exit::Credentials, format!("consent was not given ({error})"))
        .hint(format!("run 'highwater auth {source}' again, with an account that may give it"))
}

/// The first request that answers our question, among whatever else comes to the door.
async fn answer(door: &TcpListener, consent: &Consent) -> std::io::Result<Redirected> {
    let mut visits = FuturesUnordered::new();
    loop {
        tokio::select! {
            visitor = door.accept(), if visits.len() < VISITS_MAX => {
                let (stream, _) = visitor?;
                visits.push(timeout(VISIT_MAX, visit(stream, consent)));
            }
            Some(visit) = visits.next() => {
                if let Ok(Ok(redirected @ (Redirected::Code(_) | Redirected::Denied(_)))) = visit {
                    return Ok(redirected);
                }
            }
        }
    }
}

async fn visit(mut stream: TcpStream, consent: &Consent) -> std::io::Result<Redirected> {
    let head = read_head(&mut stream).await?;
    let mut words = head.split(' ');
    let redirected = match (words.next(), words.next()) {
        (Some("GET"), Some(target)) => consent.read(target),
        _ => Redirected::Stranger,
    };
    let page = page(&redirected);
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(redirected)
}

async fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_MAX {
        match stream.read(&mut part).await? {
            0 => break,
            count => head.extend_from_slice(&part[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn page(redirected: &Redirected) -> String {
    let (status, text) = match redirected {
        Redirected::Code(_) => {
            ("200 OK", "Highwater has your consent. You may close this page and go back to the terminal.")
        }
        Redirected::Denied(_) => ("200 OK", "Highwater has no consent. You may close this page."),
        Redirected::Stranger => ("404 Not Found", "Nothing is here."),
    };
    let body = format!("<!doctype html><meta charset=\"utf-8\"><title>Highwater</title><p>{text}</p>\n");
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
