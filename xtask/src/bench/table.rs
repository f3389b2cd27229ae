//! The figures as text, in columns.

use std::fmt::Write;

use super::figures::{Figures, Judged, Measured, Target};

pub(super) fn draw(figures: &Figures) -> String {
    let mut text = format!("\n{:<42} {:>12} {:>10}\n", "medians", "items/s", "MB");
    for Measured { name, items_per_second, peak_rss_mb } in &figures.measured {
        let memory = peak_rss_mb.map_or_else(|| "-".into(), |memory| format!("{memory:.0}"));
        line(&mut text, format_args!("{name:<42} {:>12} {memory:>10}", grouped(*items_per_second)));
    }
    line(&mut text, format_args!("\n{:<42} {:>12} {:>10}", "figure", "measured", "target"));
    for judged in &figures.judged {
        line(&mut text, format_args!("{}", judged_line(judged)));
    }
    text
}

fn judged_line(Judged { name, value, target }: &Judged) -> String {
    let Some(target) = *target else { return format!("{name:<42} {:>12}", number(*value)) };
    let wanted = match target {
        Target::AtLeast(least) => format!(">= {}", number(least)),
        Target::AtMost(most) => format!("<= {}", number(most)),
    };
    let verdict = if target.is_met(*value) { "PASS" } else { "MISS" };
    format!("{name:<42} {:>12} {wanted:>10}  {verdict}", number(*value))
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

/// Small shares need their digits, large values do not.
fn number(value: f64) -> String {
    let digits = match value {
        ..0.1 => 4,
        0.1..10.0 => 2,
        _ => 1,
    };
    format!("{value:.digits$}")
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let from_end = |index: usize| digits.len() - index;
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && from_end(index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_says_whether_it_meets_its_target() {
        let judged = |value, target| Judged { name: "a / b".into(), value, target: Some(target) };
        let pass = judged_line(&judged(0.8, Target::AtLeast(0.75)));
        assert_eq!(pass.split_whitespace().collect::<Vec<_>>(), ["a", "/", "b", "0.80", ">=", "0.75", "PASS"]);
        let miss = judged_line(&judged(0.0213, Target::AtMost(0.02)));
        assert_eq!(miss.split_whitespace().collect::<Vec<_>>(), ["a", "/", "b", "0.0213", "<=", "0.0200", "MISS"]);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(["0", "12", "123", "1,234", "1,234,567"], [0.0, 12.0, 123.0, 1_234.0, 1_234_567.0].map(grouped)[..]);
    }
}
