//! The text format itself: escapes, types, histograms. A metric without samples leaves no trace.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use super::Family;
use crate::HistogramView;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

pub(super) type Label<'a> = (&'static str, &'a str);

/// Where the samples of one metric go.
pub(super) struct Page<'a> {
    family: &'static Family,
    text: &'a mut String,
    has_head: bool,
}

impl<'a> Page<'a> {
    pub(super) fn new(family: &'static Family, text: &'a mut String) -> Self {
        Page { family, text, has_head: false }
    }

    pub(super) fn count(&mut self, labels: &[Label<'_>], value: u64) {
        self.sample("", labels, value);
    }

    /// A number that is none is left out.
    pub(super) fn number(&mut self, labels: &[Label<'_>], value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.sample("", labels, value);
        }
    }

    pub(super) fn histogram(&mut self, labels: &[Label<'_>], histogram: &HistogramView) {
        if histogram.counts.len() != histogram.bounds.len() + 1 {
            return;
        }
        let bounds = histogram.bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        let mut below = 0;
        for (bound, count) in bounds.zip(&histogram.counts) {
            below += count;
            self.sample("_bucket", &[labels, &[("le", &bound)]].concat(), below);
        }
        if let Some(sum) = histogram.sum.filter(|sum| sum.is_finite()) {
            self.sample("_sum", labels, sum);
        }
        self.sample("_count", labels, below);
    }

    fn sample(&mut self, suffix: &str, labels: &[Label<'_>], value: impl fmt::Display) {
        if !self.has_head {
            self.has_head = true;
            self.head();
        }
        let name = self.family.name;
        let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(self.text, "{name}{suffix}{labels} {value}").expect("a string takes all that is written to it");
    }

    fn head(&mut self) {
        let Family { name, kind, help, .. } = self.family;
        let kind = kind.as_str();
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}")
            .expect("a string takes all that is written to it");
    }
}

fn escaped(value: &str) -> Cow<'_, str> {
    if value.contains(['\\', '"', '\n']) {
        value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n").into()
    } else {
        value.into()
    }
}
