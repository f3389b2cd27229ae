//! What an answer says about the quota: go on, slow down, or nothing. `Retry-After` is read here and nowhere else.

use std::time::{Duration, SystemTime};

use highwater_core::{SILENCE_MAX, Timestamp};
use http::{HeaderMap, StatusCode, header};

use crate::Response;

/// Reads an answer that arrived at the given time.
pub type Classifier = fn(&Response, Timestamp) -> Reading;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The source did its work, whatever the answer means for the key.
    Served,
    /// The source is in trouble, and not because of us.
    Failed,
    /// Too much: the whole account waits.
    Throttled { retry_after: Option<Duration> },
}

/// 429, and 503 if it says when to come back.
pub fn read_status(response: &Response, now: Timestamp) -> Reading {
    let retry_after = || retry_after(&response.headers, now).map(|wait| wait.min(SILENCE_MAX));
    match response.status {
        StatusCode::TOO_MANY_REQUESTS => Reading::Throttled { retry_after: retry_after() },
        StatusCode::SERVICE_UNAVAILABLE => match retry_after() {
            Some(wait) => Reading::Throttled { retry_after: Some(wait) },
            None => Reading::Failed,
        },
        status if status.is_server_error() => Reading::Failed,
        _ => Reading::Served,
    }
}

/// Seconds, a part of one taken as a whole, or a date. A date is compared with the server's own clock where that is known; one that has passed means
/// now.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let (seconds, part) = text.split_once('.').unwrap_or((text, "0"));
    if is_number(seconds) && is_number(part) {
        let seconds = seconds.parse().unwrap_or(u64::MAX);
        let begun = u64::from(part.bytes().any(|digit| digit != b'0'));
        return Some(Duration::from_secs(seconds.saturating_add(begun)));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let server_date = headers.get(header::DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    let from = server_date.unwrap_or_else(|| system_time(now));
    Some(until.duration_since(from).unwrap_or(Duration::ZERO))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn system_time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + at.since(Timestamp::EPOCH)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: Timestamp = Timestamp::from_millis(784_111_777_000);

    fn reads(status: u16, headers: &[(header::HeaderName, &str)]) -> Reading {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        read_status(&Response::new(StatusCode::from_u16(status).unwrap(), headers, Bytes::new()), NOW)
    }

    fn throttled(seconds: u64) -> Reading {
        Reading::Throttled { retry_after: Some(Duration::from_secs(seconds)) }
    }

    #[test]
    fn only_429_and_503_with_a_time_ask_to_slow_down() {
        let after = |text: &'static str| [(header::RETRY_AFTER, text)];
        assert_eq!(reads(429, &[]), Reading::Throttled { retry_after: None });
        assert_eq!(reads(429, &after("soon")), Reading::Throttled { retry_after: None });
        assert_eq!(reads(429, &after("7")), throttled(7));
        assert_eq!(reads(503, &after(" 0 ")), throttled(0));
        assert_eq!(reads(503, &after("2.5")), throttled(3));
        assert_eq!(reads(503, &after("2.00")), throttled(2));
        assert_eq!(reads(429, &after("2.")), Reading::Throttled { retry_after: None });
        assert_eq!(reads(503, &[]), Reading::Failed);
        assert_eq!(reads(503, &after("-1")), Reading::Failed);
        assert_eq!(reads(500, &after("7")), Reading::Failed);
        for served in [200, 204, 304, 401, 403, 404] {
            assert_eq!(reads(served, &after("7")), Reading::Served, "{served}");
        }
    }

    #[test]
    fn nobody_is_left_alone_for_more_than_a_day() {
        let after = |text: &'static str| reads(429, &[(header::RETRY_AFTER, text)]);
        assert_eq!(after("86399"), throttled(86_399));
        assert_eq!(after("31536000000"), throttled(86_400));
        assert_eq!(after("99999999999999999999999"), throttled(86_400));
    }

    #[test]
    fn dates_are_measured_on_the_clock_of_the_server() {
        let until = (header::RETRY_AFTER, "Sun, 06 Nov 1994 09:00:00 GMT");
        assert_eq!(reads(429, std::slice::from_ref(&until)), throttled(623));
        assert_eq!(reads(429, &[until.clone(), (header::DATE, "Sun, 06 Nov 1994 08:59:50 GMT")]), throttled(10));
        assert_eq!(reads(429, &[until, (header::DATE, "Mon, 07 Nov 1994 09:00:00 GMT")]), throttled(0));
    }
}
