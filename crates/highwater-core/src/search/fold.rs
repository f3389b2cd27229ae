//! Letters without case and without marks: `É`, `é` and `e` with an accent behind it are all `e`.

use std::sync::LazyLock;

/// Base letters, and those that Unicode decomposes into one of them and marks, in lower case; with the few that are
/// commonly written as others (`ß` as `ss`, `ø` as `o`).
#[rustfmt::skip]
const MARKED: &[(&str, &str)] = &[
    ("a", "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ"), ("ae", "æǣǽ"), ("b", "ḃḅḇ"), ("c", "çćĉċčḉ"), ("d", "ðďđḋḍḏḑḓ"),
    ("e", "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ"), ("f", "ḟ"), ("g", "ĝğġģǧǵḡ"), ("h", "ĥħȟḣḥḧḩḫẖ"), ("i", "ìíîïĩīĭįıǐȉȋḭḯỉị"),
    ("j", "ĵǰ"), ("k", "ķǩḱḳḵ"), ("l", "ĺļľłḷḹḻḽ"), ("m", "ḿṁṃ"), ("n", "ñńņňǹṅṇṉṋ"),
    ("o", "òóôõöøōŏőơǒǫǭǿȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ"), ("oe", "œ"), ("p", "ṕṗ"), ("r", "ŕŗřȑȓṙṛṝṟ"), ("s", "śŝşšſșṡṣṥṧṩẛ"),
    ("ss", "ß"), ("t", "ţťŧțṫṭṯṱẗ"), ("th", "þ"), ("u", "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự"), ("v", "ṽṿ"), ("w", "ŵẁẃẅẇẉẘ"),
    ("x", "ẋẍ"), ("y", "ýÿŷȳẏẙỳỵỷỹ"), ("z", "źżžẑẓẕ"),
    ("α", "άἀἁἂἃἄἅἆἇὰάᾀᾁᾂᾃᾄᾅᾆᾇᾰᾱᾲᾳᾴᾶᾷ"), ("ε", "έἐἑἒἓἔἕὲέ"), ("η", "ήἠἡἢἣἤἥἦἧὴήᾐᾑᾒᾓᾔᾕᾖᾗῂῃῄῆῇ"),
    ("ι", "ΐίϊἰἱἲἳἴἵἶἷὶίιῐῑῒΐῖῗ"), ("ο", "όὀὁὂὃὄὅὸό"), ("ρ", "ῤῥ"), ("σ", "ς"), ("υ", "ΰϋύὐὑὒὓὔὕὖὗὺύῠῡῢΰῦῧ"),
    ("ω", "ώὠὡὢὣὤὥὦὧὼώᾠᾡᾢᾣᾤᾥᾦᾧῲῳῴῶῷ"),
    ("а", "ӑӓ"), ("г", "ѓ"), ("е", "ѐёӗ"), ("ж", "ӂӝ"), ("з", "ӟ"), ("и", "йѝӣӥ"), ("к", "ќ"), ("о", "ӧ"), ("у", "ўӯӱӳ"),
    ("ч", "ӵ"), ("ы", "ӹ"), ("э", "ӭ"), ("і", "ї"), ("ә", "ӛ"), ("ө", "ӫ"),
];

/// In order, to be found by halving.
static FOLDED: LazyLock<Vec<(char, &'static str)>> = LazyLock::new(|| {
    let pairs = MARKED.iter().flat_map(|(base, marked)| marked.chars().map(move |letter| (letter, *base)));
    let mut folded: Vec<_> = pairs.collect();
    folded.sort_unstable();
    folded
});

/// What stands on or within letters and is no letter: accents, points of Hebrew and Arabic, voice marks of kana, soft
/// hyphens, joiners.
const MARKS: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),
    ('\u{300}', '\u{36f}'),
    ('\u{591}', '\u{5bd}'),
    ('\u{5bf}', '\u{5bf}'),
    ('\u{5c1}', '\u{5c2}'),
    ('\u{5c4}', '\u{5c5}'),
    ('\u{5c7}', '\u{5c7}'),
    ('\u{640}', '\u{640}'),
    ('\u{64b}', '\u{65f}'),
    ('\u{670}', '\u{670}'),
    ('\u{1ab0}', '\u{1aff}'),
    ('\u{1dc0}', '\u{1dff}'),
    ('\u{200c}', '\u{200d}'),
    ('\u{20d0}', '\u{20ff}'),
    ('\u{3099}', '\u{309a}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{fe20}', '\u{fe2f}'),
];

pub(super) fn is_mark(c: char) -> bool {
    c >= '\u{ad}' && within(MARKS, c)
}

pub(super) fn within(ranges: &[(char, char)], c: char) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// Adds a letter or digit to a word.
pub(super) fn fold(c: char, word: &mut String) {
    if c.is_ascii() {
        return word.push(c.to_ascii_lowercase());
    }
    for lower in narrowed(c).to_lowercase().filter(|lower| !is_mark(*lower)) {
        match FOLDED.binary_search_by_key(&lower, |(letter, _)| *letter) {
            Ok(place) => word.push_str(FOLDED[place].1),
            Err(_) => word.push(lower),
        }
    }
}

/// The letters and digits of ASCII have a wide form in East Asian texts.
fn narrowed(c: char) -> char {
    const WIDER_BY: u32 = 0xfee0;
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - WIDER_BY).unwrap_or(c),
        _ => c,
    }
}
