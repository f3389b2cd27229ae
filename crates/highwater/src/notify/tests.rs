//! The notifier against servers on real sockets. Time is paused, so that waits between tries cost nothing.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::*;
use crate::config::SmtpConfig;

const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn change(state: AlertState) -> AlertChange {
    AlertChange {
        condition: Condition::ListenerDown,
        severity: Severity::Critical,
        state,
        message: "the feed has been down for 75 s".into(),
        send: true,
    }
}

/// A request or a mail, as it arrived.
type Arrivals = mpsc::UnboundedReceiver<String>;

struct Site {
    port: u16,
    arrivals: Arrivals,
}

/// Answers requests with the given statuses, one after the other.
async fn web(statuses: &[u16]) -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (arrived, arrivals) = mpsc::unbounded_channel();
    let statuses = Arc::new(Mutex::new(VecDeque::from(statuses.to_vec())));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(answer_requests(stream, statuses.clone(), arrived.clone()));
        }
    });
    Site { port, arrivals }
}

async fn answer_requests(
    stream: TcpStream,
    statuses: Arc<Mutex<VecDeque<u16>>>,
    arrived: mpsc::UnboundedSender<String>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream).await {
        arrived.send(request).unwrap();
        let Some(status) = statuses.lock().unwrap().pop_front() else { return };
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + std::str::from_utf8(&body).unwrap())
}

/// Takes mail after refusing `refusals` times with a code that says to try later.
async fn mail_server(refusals: usize) -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (arrived, arrivals) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for visit in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            if let Some(dialogue) = take_mail(stream, visit < refusals).await {
                arrived.send(dialogue).unwrap();
            }
        }
    });
    Site { port, arrivals }
}

/// What the client said until it quit, or until it was refused.
async fn take_mail(stream: TcpStream, refuse: bool) -> Option<String> {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 sink\r\n").await.ok()?;
    let (mut said, mut in_data) = (String::new(), false);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return Some(said);
        }
        let verb = line.split([' ', '\r']).next().unwrap_or_default().to_owned();
        said += &line;
        let reply = match (in_data, verb.as_str()) {
            (true, ".") => "250 taken\r\n",
            (true, _) => continue,
            (false, "EHLO") => "250-sink\r\n250 AUTH PLAIN\r\n",
            (false, "AUTH") => "235 welcome\r\n",
            (false, "MAIL") if refuse => "451 ann@example.com: later\r\n",
            (false, "DATA") => "354 go on\r\n",
            (false, "QUIT") => "221 bye\r\n",
            (false, _) => "250 fine\r\n",
        };
        in_data = verb == "DATA";
        stream.write_all(reply.as_bytes()).await.ok()?;
    }
}

fn webhook_to(site: &Site) -> NotifyConfig {
    let url = format!("http://127.0.0.1:{}/hooks/T0?key=S3CRET", site.port);
    NotifyConfig { webhook: Some(SecretString::from(url)), smtp: None }
}

fn mail_to(site: &Site) -> NotifyConfig {
    let smtp = SmtpConfig {
        url: format!("smtp://127.0.0.1:{}", site.port),
        from: "Highwater <highwater@example.com>".into(),
        to: vec!["ann@example.com".into(), "bob@example.com".into()],
        password_env: None,
    };
    NotifyConfig { webhook: None, smtp: Some(smtp) }
}

async fn told(config: &NotifyConfig, changes: &[AlertChange]) {
    let notifier = Notifier::start(config).unwrap();
    changes.iter().for_each(|change| notifier.send(change, "hn", AT));
    notifier.finish().await;
}

fn drain(mut arrivals: Arrivals) -> Vec<String> {
    std::iter::from_fn(|| arrivals.try_recv().ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_webhook_gets_what_is_raised_and_what_is_resolved() {
    let site = web(&[200, 204, 200]).await;
    let silent = AlertChange { send: false, ..change(AlertState::Raised) };
    let states = [AlertState::Raised, AlertState::Lasting, AlertState::Resolved];
    let changes: Vec<_> = [silent].into_iter().chain(states.map(change)).collect();
    told(&webhook_to(&site), &changes).await;
    let requests = drain(site.arrivals);
    let states: Vec<_> = requests.iter().map(|request| body(request)["state"].clone()).collect();
    assert_eq!(states, ["raised", "raised", "resolved"]);
    assert!(requests[0].starts_with("POST /hooks/T0?key=S3CRET HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("content-type: application/json\r\n"), "{}", requests[0]);
    let expected = json!({
        "condition": "listener_down",
        "severity": "critical",
        "state": "raised",
        "message": "the feed has been down for 75 s",
        "source": "hn",
        "at": "2023-11-14T22:13:20Z",
    });
    assert_eq!(body(&requests[0]), expected);
}

fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_fails_is_tried_three_times_and_one_that_refuses_once() {
    for (statuses, requests) in [(&[500, 503, 500, 200][..], 3), (&[429, 200][..], 2), (&[404, 200][..], 1)] {
        let site = web(statuses).await;
        let notifier = Notifier::start(&webhook_to(&site)).unwrap();
        notifier.send(&change(AlertState::Raised), "hn", AT);
        let Notifier { notes, task } = notifier;
        drop(notes);
        task.await.unwrap();
        assert_eq!(drain(site.arrivals).len(), requests, "{statuses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_never_answers_does_not_hold_up_the_end() {
    let site = web(&[]).await;
    told(&webhook_to(&site), &vec![change(AlertState::Raised); 3 * QUEUE_MAX]).await;
    assert_eq!(drain(site.arrivals).len(), 2, "there is no time for a third try");
}

#[tokio::test(start_paused = true)]
async fn nothing_secret_is_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    let _guard = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
    let (site, mail) = (web(&[500, 404]).await, mail_server(3).await);
    told(&NotifyConfig { smtp: mail_to(&mail).smtp, ..webhook_to(&site) }, &[change(AlertState::Raised)]).await;
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("status 404") && log.contains("the mail server answered 451"), "{log}");
    assert!(!log.contains("S3CRET") && !log.contains("@example.com"), "{log}");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn mail_goes_to_everybody_named() {
    let site = mail_server(0).await;
    told(&mail_to(&site), &[change(AlertState::Raised)]).await;
    let mut arrivals = site.arrivals;
    let mail = arrivals.recv().await.unwrap();
    for line in [
        "MAIL FROM:<highwater@example.com>",
        "RCPT TO:<ann@example.com>",
        "RCPT TO:<bob@example.com>",
        "Subject: [highwater] hn: listener_down raised (critical)",
        "Date: Tue, 14 Nov 2023 22:13:20 +0000",
        "the feed has been down for 75 s",
    ] {
        assert!(mail.contains(line), "{line} is not in\n{mail}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_named_logs_in_with_the_password_of_the_environment() {
    let site = mail_server(0).await;
    let mut config = mail_to(&site);
    let smtp = config.smtp.as_mut().unwrap();
    smtp.url = format!("smtp://ann@127.0.0.1:{}", site.port);
    // A variable that every process has.
    smtp.password_env = Some("PATH".into());
    told(&config, &[change(AlertState::Raised)]).await;
    let mut arrivals = site.arrivals;
    assert!(arrivals.recv().await.unwrap().contains("AUTH PLAIN "));
}

#[tokio::test(start_paused = true)]
async fn mail_that_is_put_off_is_sent_again() {
    let site = mail_server(2).await;
    let notifier = Notifier::start(&mail_to(&site)).unwrap();
    notifier.send(&change(AlertState::Resolved), "hn", AT);
    let Notifier { notes, task } = notifier;
    drop(notes);
    task.await.unwrap();
    let mut arrivals = site.arrivals;
    let (first, second, third) = (arrivals.recv().await, arrivals.recv().await, arrivals.recv().await);
    assert!(!first.unwrap().contains("DATA") && !second.unwrap().contains("DATA"));
    assert!(third.unwrap().contains("listener_down resolved"));
}

#[tokio::test]
async fn what_cannot_work_is_refused_at_the_start_without_naming_secrets() {
    let refused = |config: &NotifyConfig| format!("{:#}", Notifier::start(config).err().unwrap());
    let webhook = |url: &str| NotifyConfig { webhook: Some(SecretString::from(url.to_owned())), smtp: None };
    for url in ["S3CRET", "ftp://h/S3CRET", "http://ann:S3CRET@h/", "http://[S3CRET/"] {
        let error = refused(&webhook(url));
        assert!(error.starts_with("alerts.webhook") && !error.contains("S3CRET"), "{error}");
    }
    let mail = |change: &dyn Fn(&mut SmtpConfig)| {
        let mut smtp =
            SmtpConfig { url: "smtp://127.0.0.1".into(), from: "a@b.example".into(), ..SmtpConfig::default() };
        change(&mut smtp);
        NotifyConfig { webhook: None, smtp: Some(smtp) }
    };
    assert!(refused(&mail(&|smtp| smtp.from = "nobody".into())).starts_with("alerts.from"));
    assert!(refused(&mail(&|smtp| smtp.to = vec!["nobody".into()])).starts_with("alerts.to"));
    let error = refused(&mail(&|smtp| smtp.url = "smtps://ann:S3CRET@h".into()));
    assert!(error.starts_with("alerts.smtp") && !error.contains("S3CRET"), "{error}");
    let unset = mail(&|smtp| smtp.password_env = Some("HIGHWATER_TEST_UNSET".into()));
    assert!(refused(&unset).contains("HIGHWATER_TEST_UNSET"));
}
