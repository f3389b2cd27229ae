//! Ports that stay ours while a server is made, or stopped for a while.
//!
//! The kernel deals the ports from 32768 on to whoever connects anywhere, and tests connect all the time: a port of
//! those that is free now may be taken before the server listens. So ours lie below.

use std::{
    io,
    net::TcpListener,
    sync::atomic::{AtomicU32, Ordering},
};

const FIRST: u32 = 12_000;
const COUNT: u32 = 20_000;

/// Each process looks at other ports, so that two of them do not find the same one free at the same moment.
const PER_PROCESS: u32 = 16;

/// The next port that nobody listens on.
pub(crate) fn next() -> io::Result<u16> {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id().wrapping_mul(PER_PROCESS);
    first_free((0..COUNT).map(|_| {
        let number = own.wrapping_add(ASKED.fetch_add(1, Ordering::Relaxed)) % COUNT;
        u16::try_from(FIRST + number).expect("the last of them has 16 bits")
    }))
}

fn first_free(ports: impl Iterator<Item = u16>) -> io::Result<u16> {
    let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for port in ports {
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_and_only_while_it_is_free() {
        let (one, other) = (next().unwrap(), next().unwrap());
        assert_ne!(one, other);
        let busy = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let taken = busy.local_addr().unwrap().port();
        assert_eq!(first_free([taken, one].into_iter()).unwrap(), one);
        assert_eq!(first_free([taken].into_iter()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
