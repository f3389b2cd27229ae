//! The names of everything that can go wrong with one reply. What a fault looks like on the wire is decided where
//! replies are built, when it strikes is decided in `dice`.

use std::{fmt, str::FromStr};

use http::StatusCode;
use serde::{Deserialize, Deserializer, de::Error as _};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// 500 with a JSON error body.
    Internal,
    /// 502 with an HTML page, as a proxy sends it.
    BadGateway,
    /// 503 with a JSON error body.
    Unavailable,
    /// 503 with `Retry-After`.
    UnavailableRetryAfter,
    /// 429 without `Retry-After`.
    TooMany,
    /// 429 with `Retry-After`.
    TooManyRetryAfter,
    /// 401 `Permission denied`: with this API it is about the item, not about the caller.
    Unauthorized,
    Forbidden,
    NotFound,
    /// 200 with the four bytes `null`.
    Null,
    /// A comment whose text is `[delayed]`. Only for comments that have a text of their own.
    Delayed,
    /// 200 with the body of a neighbour.
    WrongId,
    /// A valid item of more than 8 MiB.
    Oversized,
    /// 200 with an HTML page.
    Html,
    /// TCP reset before any byte of the reply.
    Reset,
    /// TCP reset in the middle of the body.
    ResetBody,
    /// `Content-Length` right, connection closed in the middle of the body.
    Truncated,
    /// `Content-Length` counts the half that is sent: intact HTTP around broken JSON.
    CutJson,
    /// The body arrives in drips.
    Slow,
    /// No reply, ever.
    Hang,
}

impl Fault {
    pub const ALL: [Fault; 20] = [
        Fault::Internal,
        Fault::BadGateway,
        Fault::Unavailable,
        Fault::UnavailableRetryAfter,
        Fault::TooMany,
        Fault::TooManyRetryAfter,
        Fault::Unauthorized,
        Fault::Forbidden,
        Fault::NotFound,
        Fault::Null,
        Fault::Delayed,
        Fault::WrongId,
        Fault::Oversized,
        Fault::Html,
        Fault::Reset,
        Fault::ResetBody,
        Fault::Truncated,
        Fault::CutJson,
        Fault::Slow,
        Fault::Hang,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Fault::Internal => "500",
            Fault::BadGateway => "502",
            Fault::Unavailable => "503",
            Fault::UnavailableRetryAfter => "503-retry-after",
            Fault::TooMany => "429",
            Fault::TooManyRetryAfter => "429-retry-after",
            Fault::Unauthorized => "401",
            Fault::Forbidden => "403",
            Fault::NotFound => "404",
            Fault::Null => "null",
            Fault::Delayed => "delayed",
            Fault::WrongId => "wrong-id",
            Fault::Oversized => "oversized",
            Fault::Html => "html",
            Fault::Reset => "reset",
            Fault::ResetBody => "reset-body",
            Fault::Truncated => "truncated",
            Fault::CutJson => "cut-json",
            Fault::Slow => "slow",
            Fault::Hang => "hang",
        }
    }

    /// The status the reply carries; `None` where no status line is sent.
    pub const fn status(self) -> Option<StatusCode> {
        match self {
            Fault::Internal => Some(StatusCode::INTERNAL_SERVER_ERROR),
            Fault::BadGateway => Some(StatusCode::BAD_GATEWAY),
            Fault::Unavailable | Fault::UnavailableRetryAfter => Some(StatusCode::SERVICE_UNAVAILABLE),
            Fault::TooMany | Fault::TooManyRetryAfter => Some(StatusCode::TOO_MANY_REQUESTS),
            Fault::Unauthorized => Some(StatusCode::UNAUTHORIZED),
            Fault::Forbidden => Some(StatusCode::FORBIDDEN),
            Fault::NotFound => Some(StatusCode::NOT_FOUND),
            Fault::Reset | Fault::Hang => None,
            _ => Some(StatusCode::OK),
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    /// Faults that say something about one item; on `maxitem` or a list they would be a lie no client could detect.
    pub(crate) const fn only_for_items(self) -> bool {
        matches!(
            self,
            Fault::Unauthorized
                | Fault::Forbidden
                | Fault::NotFound
                | Fault::Null
                | Fault::Delayed
                | Fault::WrongId
                | Fault::Oversized
                | Fault::CutJson
        )
    }

    /// Faults that may last for ever on one id. A lasting 429 would stop a polite client for good, and a lasting
    /// `[delayed]` is neither a body nor an error.
    pub(crate) const fn may_last(self) -> bool {
        !matches!(
            self,
            Fault::TooMany | Fault::TooManyRetryAfter | Fault::UnavailableRetryAfter | Fault::Delayed | Fault::Slow
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault `{0}`, expected one of {list}", list = known())]
pub struct UnknownFault(String);

fn known() -> String {
    Fault::ALL.map(|fault| format!("`{fault}`")).join(", ")
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Fault::ALL.into_iter().find(|fault| fault.as_str() == name).ok_or_else(|| UnknownFault(name.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// One line of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    #[default]
    Normal,
    Fault(Fault),
}

impl Step {
    pub const fn fault(self) -> Option<Fault> {
        match self {
            Step::Normal => None,
            Step::Fault(fault) => Some(fault),
        }
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "normal" => Ok(Step::Normal),
            name => name.parse().map(Step::Fault).map_err(|error| D::Error::custom(format!("{error} or `normal`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_indices_go_round() {
        for (index, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault.index(), index);
            assert_eq!(fault.as_str().parse(), Ok(fault));
        }
    }
}
