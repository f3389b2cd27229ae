//! Durations and sizes as people write them.

use std::time::Duration;

/// `30s`, `10m`, `6h`, `14d`, also `500ms`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let seconds = match &text[digits..] {
        "ms" => return Some(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

/// `500B`, `64KB`, `16MB`, `2GB`, `1TB`, each a thousand of the one before.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let bytes: u64 = match &text[digits..] {
        "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    number.checked_mul(bytes).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        let seconds = |text| parse_duration(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("30s"), Some(30.0));
        assert_eq!(seconds("500ms"), Some(0.5));
        assert_eq!(seconds("10m"), Some(600.0));
        assert_eq!(seconds("6h"), Some(21_600.0));
        assert_eq!(seconds("14d"), Some(1_209_600.0));
        for bad in ["", "s", "10", "10 s", "-1s", "1.5h", "99999999999999999999d", "18446744073709551615d"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_have_a_number_and_a_unit() {
        assert_eq!(parse_size("16MB"), Some(16_000_000));
        assert_eq!(parse_size("2GB"), Some(2_000_000_000));
        for bad in ["", "0MB", "16", "16 MB", "16mb", "MB", "99999999999TB"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }
}
