//! The tokens of a source file that can change what the program computes.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Passes the tokens of `text` to `digest`, without comments, documentation and tests. All of a file that cannot be read as
/// tokens counts.
pub(crate) fn feed(text: &str, digest: &mut impl FnMut(&str)) {
    match text.parse::<TokenStream>() {
        Ok(tokens) => feed_stream(tokens, digest),
        Err(_) => digest(text),
    }
}

fn feed_stream(tokens: TokenStream, digest: &mut impl FnMut(&str)) {
    let mut tokens = tokens.into_iter().peekable();
    let mut skips_item = false;
    while let Some(token) = tokens.next() {
        if let TokenTree::Punct(punct) = &token
            && punct.as_char() == '#'
        {
            let is_inner = tokens.next_if(|next| next.to_string() == "!").is_some();
            if let Some(TokenTree::Group(attribute)) = tokens.next_if(is_brackets) {
                let text: String = attribute.stream().into_iter().map(|token| token.to_string()).collect();
                skips_item |= text == "cfg(test)" && !is_inner;
                if !text.starts_with("doc=") && !skips_item {
                    digest("#");
                    feed_stream(attribute.stream(), digest);
                }
                continue;
            }
        }
        let ends_item = match &token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Punct(punct) => matches!(punct.as_char(), ';' | ','),
            _ => false,
        };
        if !skips_item {
            feed_token(&token, digest);
        }
        skips_item &= !ends_item;
    }
}

fn is_brackets(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
}

fn feed_token(token: &TokenTree, digest: &mut impl FnMut(&str)) {
    let TokenTree::Group(group) = token else {
        digest(&token.to_string());
        return digest(" ");
    };
    let (open, close) = match group.delimiter() {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    };
    digest(open);
    feed_stream(group.stream(), digest);
    digest(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(text: &str) -> String {
        let mut all = String::new();
        feed(text, &mut |piece| all.push_str(piece));
        all
    }

    #[test]
    fn only_what_computes_counts() {
        let plain = "fn f(x: u8) -> u8 { x + 1 }\nconst A: &[u8] = b\"a # b\";";
        let dressed = "//! Head.\n#![doc = \"more\"]\n/// Doc.\nfn f(x: u8) /* why */ -> u8 {\n    // because\n    x + 1\n}\n\
                       const A: &[u8] = b\"a # b\";\n#[cfg(test)]\nuse super::f;\n#[cfg(test)]\nmod tests { fn g() {} }";
        assert_eq!(fed(plain), fed(dressed));
        assert_ne!(fed(plain), fed(&plain.replace("x + 1", "x + 2")));
        assert_ne!(fed(plain), fed(&plain.replace("a # b", "a # c")));
        assert_ne!(fed("#[derive(Debug)] struct A; struct B;"), fed("struct A; struct B;"));
        assert_ne!(fed("a b"), fed("ab"));
        assert_eq!(fed("#[cfg(test)] mod tests; fn f() {}"), fed("fn f() {}"));
    }

    #[test]
    fn a_file_of_no_tokens_counts_as_a_whole() {
        assert_eq!(fed("fn ("), "fn (");
    }
}
