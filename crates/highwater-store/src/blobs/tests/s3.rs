//! Blobs in a store that speaks S3: as much of one as these calls need.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use object_store::aws::AmazonS3Builder;

use super::{super::place::open_s3, *};

const BUCKET: &str = "bucket";

struct Request {
    method: String,
    /// Without the bucket.
    key: String,
    is_signed: bool,
    body: Vec<u8>,
}

/// Serves connections one after the other, for as long as the test lasts.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut objects = BTreeMap::new();
        for stream in listener.incoming() {
            serve(&stream.unwrap(), &mut objects).ok();
        }
    });
    format!("http://{address}")
}

fn serve(stream: &TcpStream, objects: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    let request = request(&mut BufReader::new(stream))?;
    let mut stream = stream;
    let (status, body) = if request.is_signed { answer(&request, objects) } else { (403, Vec::new()) };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nETag: \"e\"\r\nConnection: close\r\n\
         Last-Modified: Tue, 02 Jan 2024 10:00:00 GMT\r\n\r\n"
    )?;
    stream.write_all(if request.method == "HEAD" { &[] } else { &body })
}

fn request(stream: &mut impl BufRead) -> io::Result<Request> {
    let (mut head, mut line) = (Vec::new(), String::new());
    while stream.read_line(&mut line)? > 2 {
        head.push(std::mem::take(&mut line));
    }
    let (method, target) = head[0].split_once(' ').unwrap();
    let target = target.split([' ', '?']).next().unwrap();
    let field = |name: &str| {
        let lines = head.iter().filter_map(|line| line.split_once(':'));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    };
    let mut body = vec![0; field("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body)?;
    let key = target.trim_start_matches('/').trim_start_matches(BUCKET).trim_start_matches('/');
    let is_signed = field("authorization").is_some_and(|value| value.starts_with("AWS4-HMAC-SHA256 Credential=key/"));
    Ok(Request { method: method.into(), key: key.into(), is_signed, body })
}

fn answer(request: &Request, objects: &mut BTreeMap<String, Vec<u8>>) -> (u16, Vec<u8>) {
    match request.method.as_str() {
        "PUT" => {
            objects.insert(request.key.clone(), request.body.clone());
            (200, Vec::new())
        }
        "GET" if request.key.is_empty() => (200, listing(objects)),
        "GET" | "HEAD" => objects.get(&request.key).map_or((404, Vec::new()), |body| (200, body.clone())),
        "DELETE" => {
            objects.remove(&request.key);
            (204, Vec::new())
        }
        // The only other call is the one that deletes several.
        _ => (200, delete(&request.body, objects)),
    }
}

fn listing(objects: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut xml = String::from("<ListBucketResult><IsTruncated>false</IsTruncated>");
    for (key, body) in objects {
        let size = body.len();
        write!(xml, "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>\"e\"</ETag>").unwrap();
        xml.push_str("<LastModified>2024-01-02T10:00:00.000Z</LastModified></Contents>");
    }
    xml.push_str("</ListBucketResult>");
    xml.into_bytes()
}

fn delete(body: &[u8], objects: &mut BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    let mut xml = String::from("<DeleteResult>");
    for key in text.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()) {
        objects.remove(key);
        write!(xml, "<Deleted><Key>{key}</Key></Deleted>").unwrap();
    }
    xml.push_str("</DeleteResult>");
    xml.into_bytes()
}

fn builder(secret: &str) -> AmazonS3Builder {
    AmazonS3Builder::new().with_endpoint(server()).with_access_key_id(secret).with_secret_access_key("secret")
}

#[tokio::test]
async fn a_bucket_keeps_what_was_put() {
    check(&open_s3(builder("key"), BUCKET, "some/prefix").unwrap()).await;
}

#[tokio::test]
async fn refused_credentials_are_told_as_such() {
    let blobs = open_s3(builder("other"), BUCKET, "").unwrap();
    let error = blobs.put(Bytes::from_static(b"one")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unauthorized);
}
