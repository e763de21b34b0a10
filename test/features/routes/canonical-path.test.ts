import assert from 'node:assert/strict';
import { canonicalPath, canonicalTarget } from '../../../src/features/routes/request.ts';
import { Random } from '../../support/random.ts';

describe('a path', () => {
  const SAME: Record<string, string> = {
    '/': '/',
    '/admin': '/admin',
    '/%61dmin': '/admin',
    '/%41dmin': '/Admin',
    '/a/': '/a',
    '/a-b_c.d~e': '/a-b_c.d~e',
    '/%2D%5F%7e': '/-_~',
    "/!$&'()+,=:@": "/!$&'()+,=:@",
    '/%21%24%26%27%28%29%2b%2C%3D%3a%40': "/!$&'()+,=:@",
    '/*': '/%2A',
    '/%2a%2a': '/%2A%2A',
    '/a%20b': '/a%20b',
    '/%c3%a9': '/%C3%A9',
    '/a|b[c]{d}^`"<>': '/a%7Cb%5Bc%5D%7Bd%7D%5E%60%22%3C%3E',
    '/100%25': '/100%25',
    '/100%25%20wool': '/100%25%20wool',
    '/.well-known/x': '/.well-known/x',
    '/...': '/...',
    '/a..b/.c': '/a..b/.c',
    '/%EF%BB%BF': '/%EF%BB%BF',
  };
  for (const [path, canonical] of Object.entries(SAME)) {
    it(`${path} is compared as ${canonical}`, () => assert.deepEqual(canonicalPath(path), { value: canonical }));
  }

  const REFUSED: Record<string, readonly string[]> = {
    'does not start with "/"': ['', 'a', '*', 'http://example.org/', '?', '%2Fa', '\\a'],
    'has an empty segment': ['//', '//a', '/a//b', '/a//', '//example.org/', '/a///'],
    'has a "." or ".." segment': ['/.', '/..', '/./a', '/public/../admin', '/a/..', '/a/.', '/a/../', '/a/./'],
    'has a backslash': ['/\\', '/a\\..\\b', '/a\\b', '/\\/a'],
    'has a ";"': ['/;', '/admin;x', '/a/..;/b', '/;/a', '/a;jsessionid=1/b'],
    'has a "#" or "?"': ['/#', '/a#b', '/admin#/public', '/a?b'],
    'has a space or a control character': ['/\0', '/a\0b', '/\n', '/\r\n', '/a\tb', '/a b', '/a ', '/\x7f', '/\x1b[2J'],
    'has an encoded slash': ['/%2f', '/a%2Fb', '/..%2fadmin', '/%2F%2f', '/a/..%2F..%2F'],
    'has an encoded backslash': ['/%5c', '/a%5Cb', '/..%5cadmin'],
    'has an encoded dot': ['/%2e', '/%2e%2E/a', '/.%2e/a', '/%2E./a', '/a%2ejs'],
    'has an encoded ";"': ['/%3b', '/a%3Bb', '/..%3b/'],
    'has an encoded "#" or "?"': ['/%23', '/a%3Fb', '/a%3fb%23'],
    'has an encoded control character': ['/%00', '/a%00.js', '/%0a', '/%0D%0A', '/%1F', '/%7f', '/%C2%80', '/%c2%9F'],
    'has double encoding': [
      '/%2561',
      '/%252e%252e/',
      '/%252F',
      '/%25%32%65',
      '/%25%32%65',
      '/%25u002e',
      '/%2525%32%66',
    ],
    'has a "%" that encodes nothing': [
      '/%',
      '/%2',
      '/%zz',
      '/a%',
      '/%u002e',
      '/%%',
      '/%%32%65',
      '/%-1',
      '/% 1'.replace(' ', '_'),
    ],
    'has encoded bytes that are not UTF-8': ['/%ff', '/%80', '/%c3', '/%c3%28', '/%ed%a0%80', '/%f4%90%80%80', '/%fe'],
    'has bytes that are not ASCII': ['/é', '/\u00e9', '/\u2215', '/\uff0f', '/\u{1f600}', '/\ud800', '/\x80', '/\xff'],
  };
  for (const [reason, paths] of Object.entries(REFUSED)) {
    for (const path of paths) {
      it(`${JSON.stringify(path)} is refused: it ${reason}`, () => {
        assert.deepEqual(canonicalPath(path), { refusal: `the path ${reason}` });
      });
    }
  }

  it('is refused with overlong encodings of a slash and a dot', () => {
    for (const path of ['/%c0%af', '/%c0%ae%c0%ae/', '/%e0%80%af', '/%f0%80%80%af', '/%c1%9c'])
      assert.deepEqual(canonicalPath(path), { refusal: 'the path has encoded bytes that are not UTF-8' }, path);
  });

  const PIECES = [
    '/ // . .. a admin % %2 %25 %2e %2F %5c %61 %c3 %a9 %C3%A9 ; # ? \\ * ** %2A ~ é %00 %ff + [ | u 4 1'.split(' '),
    [' ', '\0', '\n', '\ud800'],
  ].flat();

  it('has one canonical form, which is its own, and never throws', () => {
    const random = new Random(1401);
    let canonical = 0;
    for (let round = 0; round < 50_000; round += 1) {
      const path = `/${random.some(PIECES, 6).join('')}`;
      const once = canonicalPath(path);
      if ('refusal' in once) continue;
      canonical += 1;
      assert.deepEqual(canonicalPath(once.value), once, JSON.stringify(path));
    }
    assert.ok(canonical > 1000);
  });

  it('has the same canonical form however its characters are encoded', () => {
    const random = new Random(1402);
    for (let round = 0; round < 5000; round += 1) {
      const text = `/${random.some(Array.from('abcXYZ019-_~!$&\'()+,=:@*|[]"é日😀'), 12).join('')}`;
      const encode = (character: string) =>
        Array.from(Buffer.from(character), (byte) => `%${byte.toString(16).padStart(2, '0')}`)
          .map((octet) => (random.chance(0.5) ? octet.toUpperCase() : octet))
          .join('');
      const variant = () =>
        Array.from(text, (character) =>
          character !== '/' && (character > '\x7f' || random.chance(0.5)) ? encode(character) : character,
        ).join('');
      const [one, other] = [variant(), variant()];
      assert.deepEqual(canonicalPath(one), canonicalPath(other), `${one} ${other}`);
      assert.ok('value' in canonicalPath(one), one);
    }
  });
});

describe('the target of a request', () => {
  it('is its path, without the query', () => {
    const same = ['/a', '/a?', '/a?b', '/a/?b=/../c', '/%61?x?y', '/a?%00', '/a?\\;é'];
    for (const target of same) assert.deepEqual(canonicalTarget(target), { value: '/a' }, target);
  });

  it('is refused with what could end it sooner, in the query as well', () => {
    for (const target of ['/a?b#/../admin', '/a?b c', '/a?\0', '/a?b\r\nc', '/a?\t']) {
      const refusal = 'the query has a "#", a space or a control character';
      assert.deepEqual(canonicalTarget(target), { refusal }, JSON.stringify(target));
    }
  });

  it('is no other form than a path', () => {
    for (const target of ['*', 'example.org:443', 'http://example.org/a', '?a', ''])
      assert.deepEqual(canonicalTarget(target), { refusal: 'the path does not start with "/"' }, target);
  });
});
