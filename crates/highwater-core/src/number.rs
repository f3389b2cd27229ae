//! JSON numbers in the one spelling that every database gives back.

use std::borrow::Cow;

/// What PostgreSQL's numbers can hold.
const DIGITS_MAX: u64 = 131_072;

/// Without an exponent, and zero without a sign. The places after the point stay as many as they are.
pub fn spelled_number(text: &str) -> Cow<'_, str> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, digits) = mantissa.strip_prefix('-').map_or(("", mantissa), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_zero = digits.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    let exponent: i64 = match exponent.parse() {
        Ok(exponent) if exponent != 0 || (is_zero && !sign.is_empty()) => exponent,
        _ => return Cow::Borrowed(mantissa),
    };
    if exponent.unsigned_abs() > DIGITS_MAX {
        return Cow::Borrowed(text);
    }
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let point = whole.len() as i64 + exponent;
    let all = format!("{}{whole}{fraction}{}", zeros(-point), zeros(exponent - fraction.len() as i64));
    let (before, after) = all.split_at(usize::try_from(point).unwrap_or(0));
    let before = before.trim_start_matches('0');
    let before = if before.is_empty() { "0" } else { before };
    let (sign, dot) = (if is_zero { "" } else { sign }, if after.is_empty() { "" } else { "." });
    Cow::Owned(format!("{sign}{before}{dot}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exponent_and_the_sign_of_zero_are_ours() {
        for same in ["0", "12", "-3.10", "100000000000000000000000000000001"] {
            assert_eq!(spelled_number(same), same);
        }
        assert_eq!(spelled_number("1.50e1"), "15.0");
        assert_eq!(spelled_number("-0.0"), "0.0");
    }
}
