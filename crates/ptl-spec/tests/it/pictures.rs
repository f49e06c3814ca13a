//! Every kind of PNG and JPEG that is read, and what its pixels are.

use std::fs;

use ptl_spec::Image;
use test_support::{files, mutations, testdata, truncations};

/// What the samples of a PNG stand for. Format text: PNG, section 11.2.1.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Colour {
    Grey = 0,
    Rgb = 2,
    Palette = 3,
    GreyAlpha = 4,
    RgbAlpha = 6,
}

const KINDS: [(Colour, &[u32]); 5] = [
    (Colour::Grey, &[1, 2, 4, 8, 16]),
    (Colour::Rgb, &[8, 16]),
    (Colour::Palette, &[1, 2, 4, 8]),
    (Colour::GreyAlpha, &[8, 16]),
    (Colour::RgbAlpha, &[8, 16]),
];

impl Colour {
    const fn samples(self) -> u32 {
        match self {
            Self::Grey | Self::Palette => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::RgbAlpha => 4,
        }
    }
}

const WIDTH: u32 = 13;
const HEIGHT: u32 = 9;
/// Starts and steps of the passes of an interlaced picture: x, y. Format text: PNG, section 8.2.
const PASSES: [[u32; 4]; 7] = [
    [0, 0, 8, 8],
    [4, 0, 8, 8],
    [0, 4, 4, 8],
    [2, 0, 4, 4],
    [0, 2, 2, 4],
    [1, 0, 2, 2],
    [0, 1, 1, 2],
];

/// Returns a sample of a pixel, some of as many bits.
fn sample(x: u32, y: u32, channel: u32, bits: u32) -> u32 {
    (x * 37 + y * 101 + channel * 59 + x * y * 7) * 977 % (1 << bits)
}

/// Returns the number of eight bits that is nearest to one of another width.
fn eight(sample: u32, bits: u32) -> u8 {
    let (most, bound) = (255 * 2 * sample, (1 << bits) - 1);
    u8::try_from((most + bound) / (2 * bound)).unwrap()
}

fn palette(index: u32) -> [u8; 3] {
    [index * 3, 255 - index, index * 11].map(|level| (level % 256) as u8)
}

fn pixel(colour: Colour, bits: u32, x: u32, y: u32) -> Vec<u8> {
    let level = |channel| eight(sample(x, y, channel, bits), bits);
    match colour {
        Colour::Grey => vec![level(0); 3],
        Colour::Palette => palette(sample(x, y, 0, bits)).to_vec(),
        Colour::GreyAlpha => vec![level(0), level(0), level(0), level(1)],
        Colour::Rgb | Colour::RgbAlpha => (0..colour.samples()).map(level).collect(),
    }
}

/// Returns the samples of pixels in rows, each row behind the number of its filter.
fn rows(colour: Colour, bits: u32, [x0, y0, dx, dy]: [u32; 4]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for y in (y0..HEIGHT).step_by(dy as usize) {
        let (mut row, mut filled) = (vec![0_u8], 0);
        for x in (x0..WIDTH).step_by(dx as usize) {
            for channel in 0..colour.samples() {
                let sample = sample(x, y, channel, bits);
                if bits == 16 {
                    row.extend((sample as u16).to_be_bytes());
                } else {
                    if filled % 8 == 0 {
                        row.push(0);
                    }
                    *row.last_mut().unwrap() |= (sample << (8 - bits - filled % 8)) as u8;
                    filled += bits;
                }
            }
        }
        if row.len() > 1 {
            bytes.extend(row);
        }
    }
    bytes
}

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], content: &[u8]) {
    out.extend((content.len() as u32).to_be_bytes());
    let start = out.len();
    out.extend(kind);
    out.extend(content);
    let crc = crc32fast::hash(&out[start..]);
    out.extend(crc.to_be_bytes());
}

/// Wraps bytes as zlib does what it cannot shorten.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    let len = u16::try_from(bytes.len()).unwrap();
    let mut out = vec![0x78, 0x01, 0x01];
    out.extend(len.to_le_bytes());
    out.extend((!len).to_le_bytes());
    out.extend(bytes);
    out.extend((b << 16 | a).to_be_bytes());
    out
}

fn png((width, height): (u32, u32), colour: Colour, bits: u32, is_interlaced: bool) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([bits as u8, colour as u8, 0, 0, u8::from(is_interlaced)]);
    chunk(&mut out, b"IHDR", &header);
    if colour == Colour::Palette {
        let colours: Vec<u8> = (0..1 << bits).flat_map(palette).collect();
        chunk(&mut out, b"PLTE", &colours);
    }
    let passes: &[[u32; 4]] = if is_interlaced { &PASSES } else { &[[0, 0, 1, 1]] };
    let samples: Vec<u8> = passes.iter().flat_map(|pass| rows(colour, bits, *pass)).collect();
    chunk(&mut out, b"IDAT", &stored(&samples));
    chunk(&mut out, b"IEND", b"");
    out
}

#[test]
fn every_colour_type_and_depth_of_png() {
    for (colour, depths) in KINDS {
        for &bits in depths {
            for is_interlaced in [false, true] {
                let what = format!("{colour:?} of {bits} bits, interlaced: {is_interlaced}");
                let file = png((WIDTH, HEIGHT), colour, bits, is_interlaced);
                let image = Image::decode(&file).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!((image.width(), image.height()), (WIDTH, HEIGHT), "{what}");
                let places = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
                let expected: Vec<u8> =
                    places.flat_map(|(x, y)| pixel(colour, bits, x, y)).collect();
                assert_eq!(image.pixels(), expected, "{what}");
            }
        }
    }
}

/// One colour may stand for nothing: it gets an alpha of 0, all others of 255.
#[test]
fn transparent_colour_of_a_png() {
    let plain = png((WIDTH, HEIGHT), Colour::Grey, 8, false);
    let at = plain.windows(4).position(|word| word == b"IDAT").unwrap() - 4;
    let mut transparency = Vec::new();
    chunk(&mut transparency, b"tRNS", &(sample(0, 0, 0, 8) as u16).to_be_bytes());
    let file = [&plain[..at], &transparency, &plain[at..]].concat();
    let image = Image::decode(&file).unwrap();
    let [first, second] = [0, 4].map(|at| image.pixels()[at + 3]);
    assert_eq!((first, second), (0, 255));
}

/// The pictures that Pillow makes of the same files stand beside them, as PNG.
#[test]
fn every_kind_of_jpeg() {
    let files = files("ptl/calls/jpeg", "jpg");
    assert_eq!(files.len(), 10);
    for path in files {
        let image = Image::decode(&fs::read(&path).unwrap()).unwrap();
        let expected = Image::decode(&fs::read(path.with_extension("png")).unwrap()).unwrap();
        assert_eq!((image.width(), image.height()), (expected.width(), expected.height()));
        let pairs = image.pixels().iter().zip(expected.pixels());
        let most = pairs.map(|(ours, theirs)| ours.abs_diff(*theirs)).max();
        assert!(most <= Some(TOLERANCE), "{path:?} differs by {most:?}");
    }
}

/// Decoders differ in how they round, and in what they make of the colours of several pixels.
const TOLERANCE: u8 = 6;

#[test]
fn sides_are_bounded_before_memory_is_taken() {
    let file = png((16_385, 1), Colour::Rgb, 8, false);
    assert_eq!(
        Image::decode(&file).unwrap_err().to_string(),
        "picture is not a picture that can be decoded: 16385 x 1 pixels, expected 1 to 16384 on each side"
    );
    let file = png((16_384, 16_384), Colour::Rgb, 8, false);
    assert_eq!(
        Image::decode(&file).unwrap_err().to_string(),
        "picture is not a picture that can be decoded: it takes more than 512 MiB of memory"
    );
    let mut jpeg = fs::read(testdata("ptl/calls/jpeg/baseline_444.jpg")).unwrap();
    let frame = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].fill(0xff);
    Image::decode(&jpeg).unwrap_err();
}

/// The coefficients of a picture in several scans are in memory together, and count.
#[test]
fn scans_of_a_jpeg_count_as_memory() {
    for (name, start, one_of_three) in [
        ("progressive_444", [0xff, 0xc2], None),
        ("baseline_444", [0xff, 0xc0], Some([0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0])),
    ] {
        let mut jpeg = fs::read(testdata(&format!("ptl/calls/jpeg/{name}.jpg"))).unwrap();
        let frame = jpeg.windows(2).position(|marker| marker == start).unwrap();
        // 64 Mi pixels: 192 MiB of colours, and 384 MiB of coefficients.
        jpeg[frame + 5..frame + 9].copy_from_slice(&[0x20, 0, 0x20, 0]);
        if let Some(scan) = one_of_three {
            jpeg.truncate(jpeg.windows(2).position(|marker| marker == [0xff, 0xda]).unwrap());
            jpeg.extend(scan);
        }
        let error = Image::decode(&jpeg).unwrap_err().to_string();
        assert!(error.ends_with("it takes more than 512 MiB of memory"), "{name}: {error}");
    }
}

#[test]
fn changed_jpegs_give_errors_or_pictures() {
    for path in files("ptl/calls/jpeg", "jpg") {
        truncations(&fs::read(path).unwrap(), |cut| _ = Image::decode(cut));
    }
    let file = fs::read(testdata("ptl/calls/jpeg/grey_progressive.jpg")).unwrap();
    mutations(&file, |changed| _ = Image::decode(changed));
}
