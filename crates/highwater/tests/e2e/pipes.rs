//! Who listens to a command does not decide how it ends.

use std::{fs::OpenOptions, process::Stdio};

use crate::support::{FAST, Home, Reply, Server, item};

/// A remote of 20 items, one of which never answers.
fn broken() -> Server {
    Server::start(|asked, _| match asked {
        Some(7) => Some(Reply::status(404)),
        _ => Some(Reply::ok(asked.map_or_else(|| "20".to_owned(), item))),
    })
}

#[test]
fn a_reader_that_has_gone_makes_nothing_complete() {
    let server = broken();
    let home = Home::new(&server.url(), &format!("{FAST}\nattempts = 1"));
    home.run(&["sync", "hn"]).exits(3);
    for args in [&["sync", "hn"][..], &["verify", "hn"], &["verify", "hn", "--json"], &["status"]] {
        let mut child = home.command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // As `head -n 0` does.
        drop(child.stdout.take());
        let expected = if args[0] == "status" { 0 } else { 3 };
        assert_eq!(child.wait().unwrap().code(), Some(expected), "{args:?}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let server = broken();
    let home = Home::new(&server.url(), &format!("{FAST}\nattempts = 1"));
    for (args, expected) in [(&["sync", "hn"][..], 3), (&["status"], 1)] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let done = home.command(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(expected), "{args:?}: {said}");
        assert!(said.contains("cannot write to standard output: No space left"), "{said}");
    }
}
