//! Marks of bodies: shown to be spared what is known already, and taken from what is new. Firebase gives them only to
//! those who ask.

use highwater_core::Key;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::{Request, Response, Tags};

const ASK: HeaderName = HeaderName::from_static("x-firebase-etag");
/// Nine times what Firebase gives.
const TAG_BYTES_MAX: usize = 256;

/// What a request says about marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    Ignored,
    Asked,
    /// Asked, and one that is known was shown.
    Shown,
}

impl Marks {
    pub(super) fn put(tags: &Tags, key: &Key, request: &mut Request) -> Marks {
        let Tags::Asked(known) = tags else { return Marks::Ignored };
        request.headers.insert(ASK, HeaderValue::from_static("true"));
        match known.get(key).and_then(|tag| HeaderValue::from_str(tag).ok()) {
            Some(tag) => {
                request.headers.insert(header::IF_NONE_MATCH, tag);
                Marks::Shown
            }
            None => Marks::Asked,
        }
    }

    /// Whether the remote says that the body is the one whose mark it was shown.
    pub(super) fn is_unchanged(self, response: &Response) -> bool {
        self == Marks::Shown && response.status == StatusCode::NOT_MODIFIED
    }

    /// The one the body came with, if it was asked for.
    pub(super) fn tag(self, headers: &HeaderMap) -> Option<String> {
        if self == Marks::Ignored {
            return None;
        }
        let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
        tag.filter(|tag| (1..=TAG_BYTES_MAX).contains(&tag.len())).map(str::to_owned)
    }
}
