//! A GET as small as it can be.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// The status and the body, asked under another name if one is given.
pub(super) fn ask(address: &str, target: &str, headers: &str) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET {target} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = String::from_utf8_lossy(&answer[9..12]).parse().map_err(|_| io::ErrorKind::InvalidData)?;
    Ok((status, answer.split_off(head + 4)))
}

/// The body of a 200.
pub(super) fn get(address: &str, target: &str) -> io::Result<Vec<u8>> {
    let (status, body) = ask(address, target, &format!("Host: {address}\r\n"))?;
    assert_eq!(status, 200, "{target}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}
