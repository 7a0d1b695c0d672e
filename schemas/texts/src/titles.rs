//! The normal form of titles and of phrases in them: what is counted as a phrase, asked for and suppressed is compared in this form.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::entities::resolved;
use crate::quotes::is_quote;

/// The longest title that is read, in characters. The rest of a longer one is left out.
const TITLE_CHARS_MAX: usize = 1_000;

/// Returns the normal form of a text: tags and character references resolved, compatibility characters unified (NFKC), lower case, quotation
/// marks and apostrophes dropped, and words separated by one blank. A word is a run of letters and digits, with `.` or `&` between two of them
/// (`node.js`, `at&t`), with `+` and `#` at its end (`c++`, `f#`), and with `++` within it (`c++20`). Anything else separates words, the hyphen too.
#[must_use]
pub fn normal(text: &str) -> String {
    let text: String = resolved(text).chars().filter(|c| !is_quote(*c)).take(TITLE_CHARS_MAX).collect();
    // What is dropped may have stood between a letter and its accent, so the last step joins them.
    let chars: Vec<char> = text.nfkc().flat_map(char::to_lowercase).nfkc().filter(|c| !is_quote(*c) && !is_ignored(*c)).nfkc().collect();
    let mut out = String::with_capacity(text.len());
    for (at, c) in chars.iter().enumerate() {
        let (before, after) = (at.checked_sub(1).and_then(|at| chars.get(at)), chars.get(at + 1));
        let is_before_word = after.is_some_and(|c| begins_word(*c));
        let is_kept = match c {
            '.' | '&' => out.ends_with(continues_word) && is_before_word,
            '+' | '#' => {
                let is_double = *c == '+' && [before, after].contains(&Some(c));
                out.ends_with(|last: char| continues_word(last) || matches!(last, '+' | '#')) && (is_double || !is_before_word)
            }
            c => begins_word(*c) || continues_word(*c) && out.ends_with(continues_word),
        };
        if is_kept {
            out.push(*c);
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Whether a word can begin with a character: a letter or a digit. An accent without a letter is no word.
fn begins_word(c: char) -> bool {
    c.is_alphanumeric() && !is_combining_mark(c)
}

/// Whether a character is a part of a word: a letter, a digit, or an accent or vowel sign of the letter before it.
fn continues_word(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// Whether a character is invisible: a soft hyphen, or one that joins or breaks.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe0e}' | '\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the normal form of titles with everything that titles have.
    #[test]
    fn normal_forms() {
        for (text, expected) in [
            ("Show HN: Agent-Mesh – a “mesh” for agents", "show hn agent mesh a mesh for agents"),
            ("Don’t use C++, C# or node.js v2.0.", "dont use c++ c# or node.js v2.0"),
            ("AT&amp;T and TCP&#x2F;IP", "at&t and tcp ip"),
            ("ＦＵＬＬ ｗｉｄｔｈ ﬁne ½", "full width fine 1 2"),
            ("Ünï  CÖDE\u{200b}", "ünï cöde"),
            ("日本語 テスト", "日本語 テスト"),
            ("हिन्दी में", "हिन्दी में"),
            ("Baahubali_2:_The_Conclusion", "baahubali 2 the conclusion"),
            ("#1 + 2 ...", "1 2"),
            ("<b>bold</b> a < b", "bold a b"),
            ("!? -- ", ""),
            // An accent in the place of an apostrophe, and accents without a letter.
            ("Don´t panic ¯\\_(ツ)_/¯", "dont panic ツ"),
            ("a.\u{301}b ¨+¨ c", "a b c"),
            ("Hawaiʻi, Hawai’i, Hawai'i", "hawaii hawaii hawaii"),
            ("\u{5e6}\u{5d4}\u{5f4}\u{5dc} \u{5e6}\u{5d4}\"\u{5dc}", "\u{5e6}\u{5d4}\u{5dc} \u{5e6}\u{5d4}\u{5dc}"),
        ] {
            assert_eq!(normal(text), expected, "{text}");
        }
    }

    /// Proves the normal form of titles like those that the site has: labels before and after the title, versions, numbers, names with signs, quotation
    /// marks of all kinds, and other scripts.
    #[test]
    fn normal_forms_of_titles() {
        for (title, expected) in [
            ("Show HN: A C++20 coroutine library (2023) [pdf]", "show hn a c++20 coroutine library 2023 pdf"),
            ("GPT-4o vs. Llama-3.1-405B", "gpt 4o vs llama 3.1 405b"),
            ("Introducing GPT\u{2011}4o", "introducing gpt 4o"),
            ("GPT\u{2011}5.2-Codex vs Claude Opus 4.5", "gpt 5.2 codex vs claude opus 4.5"),
            ("C++26 is done\u{2014}ISO C++ in C/C++", "c++26 is done iso c++ in c c++"),
            ("Cloudflare’s 1.1.1.1 is down", "cloudflares 1.1.1.1 is down"),
            ("Ask HN: What's new in iOS 17.4.1?", "ask hn whats new in ios 17.4.1"),
            ("Google’s Gemini 1.5 Pro: “a million tokens” …", "googles gemini 1.5 pro a million tokens"),
            ("ChatGPT/OpenAI outage—again", "chatgpt openai outage again"),
            ("Log4Shell: RCE 0-day in log4j2 (CVE-2021-44228)", "log4shell rce 0 day in log4j2 cve 2021 44228"),
            ("xz-utils/liblzma: backdoor in 5.6.0, 5.6.1", "xz utils liblzma backdoor in 5.6.0 5.6.1"),
            ("S&P 500, Q&A and R&D at $1,000.50", "s&p 500 q&a and r&d at 1 000.50"),
            ("F# 8 / .NET 8.0 & ASP.NET", "f# 8 net 8.0 asp.net"),
            ("Launch HN: Acme (YC W24) – “Notepad++” for g++", "launch hn acme yc w24 notepad++ for g++"),
            ("Yahoo! + AOL = Oath; a+b", "yahoo aol oath a b"),
            ("Node.js 20.0.0 released!", "node.js 20.0.0 released"),
            ("Intel’s ‘Raptor Lake’ 13900KS @ 6GHz | 50% faster", "intels raptor lake 13900ks 6ghz 50 faster"),
            ("Pokémon GO", "pokémon go"),
            ("Пожар в Москве: «Крокус»", "пожар в москве крокус"),
            ("深度求索 DeepSeek‑R1 发布", "深度求索 deepseek r1 发布"),
            ("\u{1f680} Starship’s 4th flight: IFT-4", "starships 4th flight ift 4"),
        ] {
            assert_eq!(normal(title), expected, "{title}");
        }
    }
}
