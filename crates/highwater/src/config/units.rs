//! Durations as people write them, and as they like to read them.

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
}
