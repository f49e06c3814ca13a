//! Making texts into tokens, with the vocabularies of BERT and GPT-2.

use std::{collections::HashMap, fs};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use criterion::Throughput;
use ptl_spec::{BertMode, Gpt2Mode, Json, Params, Spec, SpecOptions, Value};
use tokenizers::{
    Tokenizer,
    models::{
        bpe::{BPE, Vocab},
        wordpiece::WordPiece,
    },
    normalizers::BertNormalizer,
    pre_tokenizers::{bert::BertPreTokenizer, byte_level::ByteLevel},
};

use crate::{
    Bound::{self, SpeedAtLeast, TimeAtMost},
    Case, Scale, Topic,
    fixture::Random,
};

/// Texts, and both tokenizers on either side; `None` where the vocabularies are not there.
#[derive(Debug)]
pub struct PtlTokens {
    given: Option<Given>,
}

#[derive(Debug)]
struct Given {
    bert: Pair,
    bert_reference: Ours,
    gpt2: Pair,
    gpt2_reference: Ours,
    len: u64,
}

/// A tokenizer of ours and that of the crate `tokenizers`, which make the same ids.
#[derive(Debug)]
struct Pair {
    ours: Ours,
    peer: Tokenizer,
    text: String,
}

/// A spec with the parameters of a text, and of one that is ten times as long.
#[derive(Debug)]
struct Ours {
    spec: Spec,
    params: Params,
    long: Params,
}

impl Topic for PtlTokens {
    const NAME: &'static str = "ptl_tokens";

    fn prepare(scale: Scale) -> Result<Self> {
        let (Some(bert), Some(gpt2)) = (original("bert_qa_spec.json"), original("gpt2_spec.json"))
        else {
            return Ok(Self { given: None });
        };
        let (bert_spec, gpt2_spec) = (Spec::parse(&bert)?, Spec::parse(&gpt2)?);
        let bert_tokens: Vec<&str> = bert_spec
            .json()
            .get("vocabulary_bert")
            .and_then(Json::as_str)
            .context("vocabulary_bert")?
            .lines()
            .collect();
        let text = text(&bert_tokens, if scale == Scale::TEST { 5_000 } else { 100_000 });
        let ours = |spec, options| Ours::new(spec, options, &text);
        let given = Given {
            bert: Pair {
                ours: ours(&bert, Spec::options().bert(BertMode::WordPiece))?,
                peer: bert_peer(&bert_tokens)?,
                text: text.clone(),
            },
            bert_reference: ours(&bert, Spec::options())?,
            gpt2: Pair {
                ours: ours(&gpt2, Spec::options().gpt2(Gpt2Mode::ByteLevelBpe))?,
                peer: gpt2_peer(&gpt2_spec)?,
                text: text.clone(),
            },
            gpt2_reference: ours(&gpt2, Spec::options())?,
            len: text.len() as u64,
        };
        given.bert.compare().context("BERT")?;
        given.gpt2.compare().context("GPT-2")?;
        Ok(Self { given: Some(given) })
    }

    fn cases(&self) -> Result<Vec<Case<'_>>> {
        let Some(given) = &self.given else { return Ok(Vec::new()) };
        let bert = given
            .case("bert", &given.bert, &given.bert_reference)
            .check(
                "ptl: 100 KB of text into tokens of BERT, word pieces",
                "ours",
                "tokenizers",
                SpeedAtLeast(1.0),
            )
            .check("the same as PyTorch Live does it", "reference", "tokenizers", TimeAtMost(1.0))
            .check("ten times the text", "ten times", "ours", LINEAR);
        let gpt2 = given
            .case("gpt2", &given.gpt2, &given.gpt2_reference)
            .check(
                "ptl: 100 KB of text into tokens of GPT-2, byte pairs",
                "ours",
                "tokenizers",
                SpeedAtLeast(1.0),
            )
            .check("the same as PyTorch Live does it", "reference", "tokenizers", TimeAtMost(1.0))
            .check("ten times the text", "ten times", "ours", LINEAR);
        Ok(vec![bert, gpt2])
    }
}

impl Given {
    fn case<'f>(&'f self, name: &'static str, pair: &'f Pair, reference: &'f Ours) -> Case<'f> {
        Case::new(name, Throughput::Bytes(self.len))
            .run("ours", || pair.ours.ids(&pair.ours.params))
            .run("reference", || reference.ids(&reference.params))
            .run("tokenizers", || pair.peer_ids())
            .run("ten times", || pair.ours.ids(&pair.ours.long))
    }
}

impl Pair {
    fn peer_ids(&self) -> Result<tokenizers::Encoding> {
        self.peer.encode_fast(self.text.as_str(), false).map_err(|error| anyhow!(error))
    }

    fn compare(&self) -> Result<()> {
        let Value::Tensor(ours) = self.ours.ids(&self.ours.params)? else { bail!("no tensor") };
        let (ours, theirs) = (ours.view().to_vec::<i64>()?, self.peer_ids()?);
        let theirs: Vec<i64> = theirs.get_ids().iter().map(|&id| id.into()).collect();
        let same = ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours == theirs).count();
        // What is behind the tokens of BERT is padding.
        ensure!(same == theirs.len(), "token {same} of {} differs", theirs.len());
        ensure!(ours[same..].iter().all(|&id| id == 0), "there are {} tokens", ours.len());
        ensure!(same > self.text.len() / 20, "{same} tokens");
        Ok(())
    }
}

impl Ours {
    fn new(spec: &str, options: SpecOptions, text: &str) -> Result<Self> {
        // A token has a byte at least.
        let params = |text: String| {
            let len = text.len() / 3;
            Params::new().with("string", text).with("model_input_length", len as i64)
        };
        let (params, long) = (params(text.to_owned()), params(text.repeat(10)));
        Ok(Self { spec: options.parse(spec)?, params, long })
    }

    fn ids(&self, params: &Params) -> Result<Value> {
        Ok(self.spec.call(params)?.pack()?)
    }
}

/// Returns a spec of the package of PyTorch Live; `None`, with a line that says so, where it is
/// absent.
#[expect(clippy::print_stderr, reason = "what is skipped has to be said")]
fn original(name: &str) -> Option<String> {
    let package = "target/oracles/react-native-pytorch-core-0.2.4/package";
    let folder = test_support::workspace().join(package).join("android/src/androidTest/assets");
    let text = fs::read_to_string(folder.join(name));
    if text.is_err() {
        eprintln!("skipped: {package} is absent; `cargo xtask oracles` installs it");
    }
    text.ok()
}

fn bert_peer(tokens: &[&str]) -> Result<Tokenizer> {
    let vocabulary: Vocab = tokens.iter().map(|token| (*token).to_owned()).zip(0..).collect();
    let model = WordPiece::builder()
        .vocab(vocabulary)
        .unk_token("[UNK]".to_owned())
        .max_input_chars_per_word(200)
        .build()
        .map_err(|error| anyhow!(error))?;
    let mut tokenizer = Tokenizer::new(model);
    let normalizer = Some(BertNormalizer::new(true, true, None, true));
    tokenizer.with_normalizer(normalizer).map_err(|error| anyhow!(error))?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    Ok(tokenizer)
}

fn gpt2_peer(spec: &Spec) -> Result<Tokenizer> {
    let Some(Json::Object(members)) = spec.json().get("vocabulary_gpt2") else {
        bail!("vocabulary_gpt2");
    };
    let mut ids = HashMap::new();
    for (token, id) in members {
        let Json::Int(id) = id else { bail!("id {id} of {token:?}") };
        ids.insert(token.clone(), u32::try_from(*id)?);
    }
    let merges = merges(&ids)?;
    let vocabulary: Vocab = ids.into_iter().collect();
    let model = BPE::builder().vocab_and_merges(vocabulary, merges).build();
    let mut tokenizer = Tokenizer::new(model.map_err(|error| anyhow!(error))?);
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    Ok(tokenizer)
}

/// Finds the two parts that each token was joined from, in the order of the ids: those that the
/// tokens before it leave of its text.
fn merges(ids: &HashMap<String, u32>) -> Result<Vec<(String, String)>> {
    let mut tokens: Vec<(&String, u32)> = ids.iter().map(|(token, id)| (token, *id)).collect();
    tokens.sort_by_key(|(_, id)| *id);
    let mut merges = Vec::new();
    for (token, own) in tokens {
        let mut parts: Vec<String> = token.chars().map(String::from).collect();
        loop {
            let joined = |at: usize| {
                let id = *ids.get(&format!("{}{}", parts[at - 1], parts[at]))?;
                (id < own).then_some((id, at))
            };
            let Some((_, at)) = (1..parts.len()).filter_map(joined).min() else { break };
            let part = parts.remove(at);
            parts[at - 1] += &part;
        }
        match <[String; 2]>::try_from(parts) {
            Ok([left, right]) => merges.push((left, right)),
            Err(parts) => ensure!(parts.len() == 1 || token == "<|endoftext|>", "{token:?}"),
        }
    }
    Ok(merges)
}

/// Returns sentences of about `len` bytes: frequent words more often than rare ones, with
/// punctuation, numbers, words that are in no vocabulary, accents and other scripts.
fn text(vocabulary: &[&str], len: usize) -> String {
    let is_word = |token: &&&str| token.len() > 1 && token.bytes().all(|b| b.is_ascii_lowercase());
    let words: Vec<&str> = vocabulary.iter().filter(is_word).copied().collect();
    let mut random = Random::new(11);
    let mut text = String::with_capacity(len + 64);
    let mut starts = true;
    while text.len() < len {
        // As words in texts are: the tenth as often as the first.
        let share = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let word = words[(words.len() as f64).powf(share) as usize % words.len()];
        let (kind, pick) = (random.next() % 100, random.next() as usize);
        match kind {
            0 => text += RARE[pick % RARE.len()],
            1 | 2 => text += &(pick % 3000).to_string(),
            3..=5 => text = text + word + words[pick % words.len()],
            _ if starts || kind == 6 => {
                text += &word[..1].to_ascii_uppercase();
                text += &word[1..];
            }
            _ => text += word,
        }
        starts = random.next().is_multiple_of(12);
        let end = [". ", "? ", "! ", ".\n\n", "; ", " - "];
        text += match random.next() % 9 {
            _ if starts => end[pick % end.len()],
            0 => ", ",
            1 if kind.is_multiple_of(4) => "'s ",
            _ => " ",
        };
    }
    text
}

/// Ten times the text, and a fifth for what caches no longer hold.
const LINEAR: Bound = TimeAtMost(12.0);
const RARE: [&str; 6] = ["café", "Zürich", "naïveté", "東京", "Владивосток", "résumés"];
