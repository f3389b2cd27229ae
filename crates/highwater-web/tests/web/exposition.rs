//! A strict reader of the text format 0.0.4: whatever a scraper might take offence at is an error.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Exposition {
    /// By name, the type.
    pub(crate) types: BTreeMap<String, String>,
    /// By name and labels as written, the value.
    pub(crate) samples: BTreeMap<String, f64>,
}

impl Exposition {
    pub(crate) fn value(&self, series: &str) -> Option<f64> {
        self.samples.get(series).copied()
    }
}

pub(crate) fn parse(text: &str) -> Result<Exposition, String> {
    let mut page = Exposition::default();
    let mut helped = BTreeSet::new();
    let mut current = String::new();
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line has no end".into());
    }
    for line in text.lines() {
        let fail = |reason: &str| Err(format!("{reason}: {line}"));
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').ok_or("help without a text")?;
            if !is_name(name) || text.is_empty() || !helped.insert(name.to_owned()) {
                return fail("bad or repeated help");
            }
            current = name.into();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').ok_or("type without a word")?;
            let is_known = ["counter", "gauge", "histogram"].contains(&kind);
            if name != current || !is_known || page.types.insert(name.into(), kind.into()).is_some() {
                return fail("bad, repeated or misplaced type");
            }
        } else {
            let (series, value) = line.rsplit_once(' ').ok_or("a sample without a value")?;
            let value = value.parse().map_err(|_| format!("no number: {line}"))?;
            let kind = page.types.get(&current).ok_or("a sample without a type")?;
            check_series(series, &current, kind).map_err(|reason| format!("{reason}: {line}"))?;
            if page.samples.insert(series.into(), value).is_some() {
                return fail("the same series twice");
            }
        }
    }
    check_histograms(&page)?;
    Ok(page)
}

fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

fn check_series(series: &str, family: &str, kind: &str) -> Result<(), &'static str> {
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let suffix = name.strip_prefix(family).ok_or("not of the metric above")?;
    let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
    if !suffixes.contains(&suffix) {
        return Err("a suffix the type does not have");
    }
    if kind == "counter" && !name.ends_with("_total") {
        return Err("a counter whose name does not end in _total");
    }
    check_labels(labels)
}

/// What is left behind the brace, up to the closing one.
fn check_labels(mut rest: &str) -> Result<(), &'static str> {
    let mut names = BTreeSet::new();
    while rest != "}" {
        let (name, behind) = rest.split_once("=\"").ok_or("a label without a value")?;
        if !is_name(name) || name.contains(':') || !names.insert(name) {
            return Err("a bad or repeated label");
        }
        let end = value_end(behind).ok_or("a value without an end")?;
        rest = &behind[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Ok(())
}

fn value_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (escaped, c) {
            (true, '\\' | '"' | 'n') => escaped = false,
            (true, _) => return None,
            (false, '\\') => escaped = true,
            (false, '"') => return Some(at),
            (false, _) => {}
        }
    }
    None
}

fn check_histograms(page: &Exposition) -> Result<(), String> {
    let names = page.types.iter().filter(|(_, kind)| *kind == "histogram").map(|(name, _)| name);
    names.into_iter().try_for_each(|name| check_histogram(page, name))
}

fn check_histogram(page: &Exposition, name: &str) -> Result<(), String> {
    let (count_name, bucket_name) = (format!("{name}_count"), format!("{name}_bucket"));
    for (series, count) in page.samples.iter().filter(|(series, _)| series.starts_with(&count_name)) {
        let labels = series[count_name.len()..].trim_matches(['{', '}']);
        let buckets =
            page.samples.iter().filter(|(series, _)| series.starts_with(&bucket_name) && series.contains(labels));
        let mut buckets: Vec<(f64, f64)> = buckets.map(|(series, below)| (bound(series), *below)).collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let rises = buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 < pair[1].0);
        if !rises || buckets.last() != Some(&(f64::INFINITY, *count)) {
            return Err(format!("{series} does not add up: {buckets:?}"));
        }
    }
    Ok(())
}

fn bound(series: &str) -> f64 {
    let text = series.split("le=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    text.parse().unwrap_or(f64::NAN)
}
