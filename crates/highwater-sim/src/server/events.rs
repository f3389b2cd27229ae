//! A stream on an HTTP/1.1 connection, which is its last reply.

use std::io;

use tokio::io::AsyncReadExt;

use super::{
    Line,
    h1::Connection,
    wire::{self, After, HEAD_MAX},
};
use crate::{
    hn::{EventStream, StreamStep},
    simulator::Simulator,
};

pub(super) async fn run<S: Simulator>(
    connection: &mut Connection,
    mut stream: EventStream,
    line: &Line<S>,
) -> io::Result<After> {
    wire::write_stream_head(&mut connection.output);
    connection.flush().await?;
    loop {
        tokio::select! {
            step = stream.next(|| line.now()) => match step {
                StreamStep::Send(piece) => {
                    wire::write_chunk(&mut connection.output, &piece);
                    connection.flush().await?;
                }
                StreamStep::End => {
                    wire::write_chunk(&mut connection.output, b"");
                    return connection.close().await;
                }
                StreamStep::Reset => return connection.reset().await,
            },
            read = connection.stream.read_buf(&mut connection.input) => {
                if read? == 0 || connection.input.len() > HEAD_MAX {
                    return Ok(After::Close);
                }
            }
        }
    }
}
