//! A writer of compact JSON objects, as fast as copying. Keys and texts must come escaped, keys in the order wanted.

pub(super) struct Json {
    out: Vec<u8>,
}

impl Json {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes);
        out.push(b'{');
        Json { out }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }

    /// A value that is JSON already.
    pub(super) fn raw(&mut self, key: &str, value: &[u8]) {
        self.key(key);
        self.out.extend_from_slice(value);
    }

    pub(super) fn number(&mut self, key: &str, value: i64) {
        self.key(key);
        if value < 0 {
            self.out.push(b'-');
        }
        digits(&mut self.out, value.unsigned_abs());
    }

    pub(super) fn text(&mut self, key: &str, value: &[u8]) {
        self.text_with(key, |out| out.extend_from_slice(value));
    }

    pub(super) fn text_with(&mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(key);
        self.out.push(b'"');
        write(&mut self.out);
        self.out.push(b'"');
    }

    pub(super) fn list(&mut self, key: &str, values: impl Iterator<Item = u64>) {
        self.key(key);
        array(&mut self.out, values);
    }

    /// The form Firebase gives to a list with holes.
    pub(super) fn list_as_object(&mut self, key: &str, values: impl Iterator<Item = u64>) {
        self.key(key);
        self.out.push(b'{');
        for (at, value) in values.enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            self.out.push(b'"');
            digits(&mut self.out, at as u64);
            self.out.extend_from_slice(b"\":");
            digits(&mut self.out, value);
        }
        self.out.push(b'}');
    }

    fn key(&mut self, key: &str) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

pub(super) fn array(out: &mut Vec<u8>, values: impl Iterator<Item = u64>) {
    out.push(b'[');
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        digits(out, value);
    }
    out.push(b']');
}

pub(super) fn digits(out: &mut Vec<u8>, mut value: u64) {
    let mut buffer = [0; 20];
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&buffer[start..]);
}

/// The form of `?print=pretty`: two spaces a level, ` : ` after keys, lists of scalars on one line.
pub(super) fn pretty(compact: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(compact.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    let mut containers = Vec::new();
    for &byte in compact {
        if in_text {
            out.push(byte);
            in_text = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        in_text = byte == b'"';
        pretty_token(&mut out, byte, &mut depth, &mut containers);
    }
    out.push(b'\n');
    out
}

fn pretty_token(out: &mut Vec<u8>, byte: u8, depth: &mut usize, containers: &mut Vec<u8>) {
    match byte {
        b'{' => {
            containers.push(byte);
            *depth += 1;
            out.push(byte);
            new_line(out, *depth);
        }
        b'[' => {
            containers.push(byte);
            out.extend_from_slice(b"[ ");
        }
        b'}' => {
            containers.pop();
            *depth -= 1;
            new_line(out, *depth);
            out.push(byte);
        }
        b']' => {
            containers.pop();
            out.extend_from_slice(b" ]");
        }
        b',' if containers.last() == Some(&b'[') => out.extend_from_slice(b", "),
        b',' => {
            out.push(byte);
            new_line(out, *depth);
        }
        b':' => out.extend_from_slice(b" : "),
        _ => out.push(byte),
    }
}

fn new_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_is_as_firebase_prints_it() {
        let compact = br#"{"by":"a, \"b\": {c}","deep":{"x":[true]},"kids":[1,2],"url":""}"#;
        let expected = "{\n  \"by\" : \"a, \\\"b\\\": {c}\",\n  \"deep\" : {\n    \"x\" : [ true ]\n  },\n  \"kids\" : [ 1, 2 ],\n  \"url\" : \"\"\n}\n";
        assert_eq!(String::from_utf8(pretty(compact)).unwrap(), expected);
        assert_eq!(pretty(b"null"), b"null\n");
        assert_eq!(pretty(br#"["\\\",:{"]"#), b"[ \"\\\\\\\",:{\" ]\n", "escapes do not end a text");
    }

    #[test]
    fn numbers_are_written_in_full() {
        let mut json = Json::with_capacity(0);
        json.number("a", i64::MIN);
        json.number("b", 0);
        json.list_as_object("c", [7, 8].into_iter());
        let text = String::from_utf8(json.finish()).unwrap();
        assert_eq!(text, r#"{"a":-9223372036854775808,"b":0,"c":{"0":7,"1":8}}"#);
    }
}
