//! Data to standard output, everything else to standard error. How a command ends does not depend on who listens.

use std::{
    io::{self, Write},
    sync::OnceLock,
};

use crate::exit::Exit;

/// Why nobody hears the data any more.
static UNHEARD: OnceLock<io::Error> = OnceLock::new();

pub(crate) fn data(text: &str) {
    if UNHEARD.get().is_some() {
        return;
    }
    let mut out = io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        UNHEARD.set(error).ok();
    }
}

pub(crate) fn complain(text: &str) {
    // Nowhere is left to say that standard error is closed.
    writeln!(io::stderr().lock(), "{text}").ok();
}

/// How a command that came to `exit` ends. `head` closes the pipe once it has seen enough, which is no fault of anybody;
/// a disk that is full keeps a result from whoever asked for it.
pub(crate) fn end(exit: Exit) -> Exit {
    match UNHEARD.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("error: cannot write to standard output: {error}"));
            exit.max(Exit::Failed)
        }
        _ => exit,
    }
}

/// A number with thin groups, as people read it.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rounded down: what is not all done is never shown as a hundred percent.
pub(crate) fn percent(part: u64, whole: u64, decimals: u32) -> String {
    let scale = 10_u128.pow(decimals);
    let units = u128::from(part.min(whole)) * 100 * scale / u128::from(whole.max(1));
    format!("{}.{:0width$}%", units / scale, units % scale, width = decimals as usize)
}

pub(crate) fn duration(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A time as people write it, in UTC.
pub(crate) fn time(at: highwater_core::Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.as_millis()) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => at.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(
            ["0", "999", "1,000", "50,500,123"],
            [0, 999, 1000, 50_500_123].map(grouped).each_ref().map(String::as_str)
        );
    }

    #[test]
    fn only_all_of_it_is_a_hundred_percent() {
        for (part, whole, expected) in [
            (0, 0, "0.0%"),
            (0, 7, "0.0%"),
            (29, 100, "29.0%"),
            (1, 3, "33.3%"),
            (19_991, 20_000, "99.9%"),
            (u64::MAX - 1, u64::MAX, "99.9%"),
            (7, 7, "100.0%"),
            (8, 7, "100.0%"),
        ] {
            assert_eq!(percent(part, whole, 1), expected, "{part} of {whole}");
        }
        assert_eq!(percent(49_999_000, 50_000_000, 2), "99.99%");
        assert_eq!(percent(1, 20, 2), "5.00%");
    }
}
