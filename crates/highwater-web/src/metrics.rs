//! A view of the service as Prometheus text, format 0.0.4. One table says which metrics there are; labels are words of
//! ours and names of the configuration, never anything that was mirrored.

mod service;
mod source;
mod text;

use crate::ServiceView;
pub use text::Kind;
use text::Page;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric, and how its samples are read off a view.
pub struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    samples: fn(&ServiceView, &mut Page<'_>),
}

const fn family(
    name: &'static str,
    kind: Kind,
    help: &'static str,
    samples: fn(&ServiceView, &mut Page<'_>),
) -> Family {
    Family { name, kind, help, samples }
}

/// Every metric there is.
pub fn families() -> impl Iterator<Item = &'static Family> {
    service::FAMILIES.iter().chain(source::FAMILIES)
}

pub fn render(view: &ServiceView) -> String {
    let mut text = String::with_capacity(8 << 10);
    for family in families() {
        (family.samples)(view, &mut Page::new(family, &mut text));
    }
    text
}
