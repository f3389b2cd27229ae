//! What a list is asked for: labels and `q`. The operators known here are those that mirrors use; others are refused
//! rather than misunderstood.

use jiff::{Timestamp, civil::Date, tz::Offset};

use super::{
    error::ApiError,
    labels::{Catalogue, Labels},
    letter::Author,
    mailbox::Entry,
    mime,
    params::Params,
    plan::{AfterBound, SearchDate, SearchPlan},
};

const DAY_S: i64 = 86_400;

#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    all: Labels,
    none: Labels,
    hidden: Labels,
    /// Seconds since 1970: the first that matches, and the first that no longer does.
    pub(super) from: Option<i64>,
    pub(super) until: Option<i64>,
    pub(super) date: SearchDate,
    texts: Vec<Text>,
}

#[derive(Clone, Debug)]
struct Text {
    wanted: bool,
    header: &'static str,
    part: String,
}

impl Filter {
    /// `now` in seconds since 1970.
    pub(super) fn parse(
        params: &Params,
        catalogue: &Catalogue,
        plan: &SearchPlan,
        now: i64,
    ) -> Result<Filter, ApiError> {
        let mut filter = Filter { hidden: Labels::SPAM | Labels::TRASH, date: plan.date, ..Filter::default() };
        for id in params.all("labelIds") {
            let label = catalogue.by_id(id).ok_or_else(|| ApiError::invalid(format!("Invalid label: {id}")))?;
            filter.want(label);
        }
        if params.first("includeSpamTrash") == Some("true") {
            filter.hidden = Labels::NONE;
        }
        for term in terms(params.first("q").unwrap_or("")) {
            filter.term(&term, catalogue, plan, now)?;
        }
        Ok(filter)
    }

    pub(super) fn matches(&self, entry: &Entry, author: &Author) -> bool {
        let labels = entry.labels;
        let dated = || {
            let second = match self.date {
                SearchDate::Internal => entry.date(),
                SearchDate::Header => entry.header_date(author),
            }
            .div_euclid(1_000);
            self.from.is_none_or(|from| second >= from) && self.until.is_none_or(|until| second < until)
        };
        labels.contains(self.all)
            && !labels.touches(self.none | self.hidden)
            && dated()
            && (self.texts.is_empty() || self.reads(entry, author))
    }

    fn reads(&self, entry: &Entry, author: &Author) -> bool {
        let raw = entry.raw(author);
        let message = mime::parse(&raw);
        self.texts.iter().all(|text| {
            let found = match text.header {
                "attachment" => message.has_attachment(),
                "filename" => message.has_file(&text.part),
                "larger" => text.part.parse().is_ok_and(|bytes: usize| raw.len() > bytes),
                name => message.header(name).is_some_and(|value| value.to_lowercase().contains(&text.part)),
            };
            found == text.wanted
        })
    }

    fn want(&mut self, label: Labels) {
        self.all = self.all | label;
        // Asked for by name, neither is hidden.
        self.hidden = self.hidden.without(label);
    }

    fn term(&mut self, term: &str, catalogue: &Catalogue, plan: &SearchPlan, now: i64) -> Result<(), ApiError> {
        let (wanted, bare) = term.strip_prefix('-').map_or((true, term), |rest| (false, rest));
        let unknown = || ApiError::invalid(format!("the simulator does not know the search term `{term}`"));
        let (operator, value) = bare.split_once(':').unwrap_or(("subject", bare));
        let operator = operator.to_ascii_lowercase();
        match (operator.as_str(), wanted) {
            ("after" | "newer", true) => self.after(instant(value).ok_or_else(unknown)?, plan.after),
            ("before" | "older", true) => self.before(instant(value).ok_or_else(unknown)?),
            ("newer_than", true) => self.after(now - span(value).ok_or_else(unknown)?, AfterBound::Inclusive),
            ("older_than", true) => self.before(now - span(value).ok_or_else(unknown)?),
            ("in", true) if value.eq_ignore_ascii_case("anywhere") => self.hidden = Labels::NONE,
            ("is", _) if value.eq_ignore_ascii_case("read") => self.label(Labels::UNREAD, !wanted),
            ("in" | "is" | "label", _) => self.label(named(value, catalogue).ok_or_else(unknown)?, wanted),
            ("has", _) if value == "attachment" => self.text("attachment", value, wanted),
            ("category", _) => self.label(category(value, catalogue).ok_or_else(unknown)?, wanted),
            ("larger" | "size", _) => self.larger(weight(value).ok_or_else(unknown)?, wanted),
            ("smaller", _) => self.larger(weight(value).ok_or_else(unknown)?.saturating_sub(1), !wanted),
            ("filename", _) => self.text("filename", value, wanted),
            ("from", _) => self.text("from", value, wanted),
            ("to", _) => self.text("to", value, wanted),
            ("cc", _) => self.text("cc", value, wanted),
            ("bcc", _) => self.text("bcc", value, wanted),
            ("subject", _) if !bare.starts_with(['(', '{']) && bare != "OR" => self.text("subject", value, wanted),
            ("rfc822msgid", _) => self.text("message-id", value, wanted),
            _ => return Err(unknown()),
        }
        Ok(())
    }

    fn label(&mut self, label: Labels, wanted: bool) {
        if wanted { self.want(label) } else { self.none = self.none | label }
    }

    fn text(&mut self, header: &'static str, part: &str, wanted: bool) {
        self.texts.push(Text { wanted, header, part: part.to_lowercase() });
    }

    fn larger(&mut self, bytes: usize, wanted: bool) {
        self.text("larger", &bytes.to_string(), wanted);
    }

    fn after(&mut self, second: i64, bound: AfterBound) {
        let from = if bound == AfterBound::Exclusive { second + 1 } else { second };
        self.from = Some(self.from.map_or(from, |known| known.max(from)));
    }

    fn before(&mut self, second: i64) {
        self.until = Some(self.until.map_or(second, |known| known.min(second)));
    }
}

/// Words, and what quotes hold together without them.
fn terms(query: &str) -> Vec<String> {
    let (mut terms, mut term, mut quoted) = (Vec::new(), String::new(), false);
    for character in query.chars().chain([' ']) {
        match character {
            '"' => quoted = !quoted,
            space if space.is_whitespace() && !quoted => {
                terms.extend((!term.is_empty()).then(|| std::mem::take(&mut term)));
            }
            other => term.push(other),
        }
    }
    terms
}

fn category(value: &str, catalogue: &Catalogue) -> Option<Labels> {
    let value = if value.eq_ignore_ascii_case("primary") { "personal" } else { value };
    catalogue.by_id(&format!("CATEGORY_{}", value.to_ascii_uppercase()))
}

/// Bytes: `5000`, `20K`, `3M`.
fn weight(value: &str) -> Option<usize> {
    let digits = value.trim_end_matches(['k', 'K', 'm', 'M', 'b', 'B']);
    let unit = match value[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

fn named(value: &str, catalogue: &Catalogue) -> Option<Labels> {
    match value.to_ascii_lowercase().as_str() {
        "drafts" => Some(Labels::DRAFT),
        "chats" => Some(Labels::CHAT),
        _ => catalogue.by_search(value),
    }
}

/// Seconds since 1970, or a day, which begins at midnight in California, in winter.
fn instant(value: &str) -> Option<i64> {
    if let Ok(seconds) = value.parse() {
        return Some(seconds);
    }
    let parts: Vec<i16> = value.split(['/', '-']).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [first, second, third] = parts[..] else { return None };
    let (year, month, day) = if first > 31 { (first, second, third) } else { (third, first, second) };
    let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let at: Timestamp = Offset::constant(-8).to_timestamp(date.at(0, 0, 0, 0)).ok()?;
    Some(at.as_second())
}

/// `3d`, `2m` (months), `1y`.
fn span(value: &str) -> Option<i64> {
    let unit = value.chars().last()?;
    let count: i64 = value.strip_suffix(unit)?.parse().ok()?;
    let days = match unit {
        'd' => 1,
        'm' => 30,
        'y' => 365,
        _ => return None,
    };
    count.checked_mul(days * DAY_S)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    fn filter(query: &str) -> Result<Filter, ApiError> {
        let params = Params::parse(query);
        Filter::parse(&params, &Catalogue::new(Seed(1), 3), &SearchPlan::default(), 1_700_000_000)
    }

    #[test]
    fn dates_are_seconds_or_days_in_california() {
        let range = |query| filter(query).map(|filter| (filter.from, filter.until)).unwrap();
        assert_eq!(range("q=after:10+before:20"), (Some(10), Some(20)));
        assert_eq!(range("q=after:10+newer:12+older:9"), (Some(12), Some(9)));
        assert_eq!(range("q=after:2023/11/14"), (Some(1_699_948_800), None));
        assert_eq!(range("q=after:11/14/2023"), (Some(1_699_948_800), None));
        assert_eq!(range("q=older_than:2d"), (None, Some(1_700_000_000 - 2 * DAY_S)));
    }

    #[test]
    fn spam_and_trash_are_hidden_unless_asked_for() {
        let hidden = |query| filter(query).unwrap().hidden;
        assert_eq!(hidden(""), Labels::SPAM | Labels::TRASH);
        for open in ["q=in:anywhere", "includeSpamTrash=true"] {
            assert_eq!(hidden(open), Labels::NONE, "{open}");
        }
        assert_eq!(hidden("labelIds=SPAM"), Labels::TRASH);
        assert_eq!(hidden("q=in:trash"), Labels::SPAM);
    }

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(
            terms(r#"in:inbox subject:"two words" -is:unread"#),
            ["in:inbox", "subject:two words", "-is:unread"]
        );
        assert_eq!(
            (weight("10"), weight("2K"), weight("3MB"), weight("x")),
            (Some(10), Some(2_048), Some(3 << 20), None)
        );
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for bad in
            ["q=list:x", "q=a+OR+b", "q=older_than:3h", "q=-after:5", "labelIds=Nope", "q=in:nowhere", "q=larger:big"]
        {
            assert_eq!(filter(bad).unwrap_err().reason, "invalidArgument", "{bad}");
        }
    }
}
