import assert from 'node:assert/strict';
import { parseHostPattern, parseMethod, parsePathPattern } from '../../../src/features/routes/request.ts';

describe('a pattern', () => {
  it('of a host is canonical', () => {
    const same = { '*': '*', 'A.org': 'a.org', '*.A.org.': '*.a.org', '*.é.org': '*.xn--9ca.org', '[::0001]': '[::1]' };
    for (const [text, value] of Object.entries(same)) assert.deepEqual(parseHostPattern(text), { value });
  });

  it('of a path is canonical', () => {
    const same = {
      '/': '/',
      '/**': '/**',
      '/**/': '/**',
      '/*/': '/*',
      '/%61/*/%2a/**': '/a/*/%2A/**',
      '/ä%20b|c': '/%C3%A4%20b%7Cc',
    };
    for (const [text, value] of Object.entries(same)) assert.deepEqual(parsePathPattern(text), { value });
  });

  const HOSTS: Record<string, string> = {
    '': 'the host is empty.',
    '**': '"*" stands alone, or first, as in *.example.org.',
    'a.*': '"*" stands alone, or first, as in *.example.org.',
    '*a.org': '"*" stands alone, or first, as in *.example.org.',
    '*.*.org': '"*" stands alone, or first, as in *.example.org.',
    '*.': 'the host is empty.',
    '*.10.0.0.1': '"*." goes before a name, not an address.',
    '*.[::1]': '"*." goes before a name, not an address.',
    'a.org:443': 'leave out the port, which is not compared.',
    '[::1]:443': 'leave out the port, which is not compared.',
    'https://a.org': 'the host is not a name or an address.',
    'a b': 'the host is not a name or an address.',
  };
  for (const [text, reason] of Object.entries(HOSTS)) {
    it(`of a host cannot be ${JSON.stringify(text)}`, () => {
      assert.deepEqual(parseHostPattern(text), { refusal: `"${text}" is not a host for a route: ${reason}` });
    });
  }

  const PATHS: Record<string, string> = {
    '': 'it must start with "/".',
    'a/b': 'it must start with "/".',
    '**': 'it must start with "/".',
    '/a?b': 'leave out the query, which is not compared.',
    '/**/a': '"**" can only come last.',
    '/**/**': '"**" can only come last.',
    '/*.js': '"*" stands for a whole segment; write %2A for the character.',
    '/a**': '"*" stands for a whole segment; write %2A for the character.',
    '/***': '"*" stands for a whole segment; write %2A for the character.',
    '/a//b': 'the path has an empty segment.',
    '//': 'the path has an empty segment.',
    '/a/../b': 'the path has a "." or ".." segment.',
    '/a;b': 'the path has a ";".',
    '/a#b': 'the path has a "#" or "?".',
    '/a b': 'the path has a space or a control character.',
    '/%2fa': 'the path has an encoded slash.',
    '/%zz': 'the path has a "%" that encodes nothing.',
  };
  for (const [text, reason] of Object.entries(PATHS)) {
    it(`of a path cannot be ${JSON.stringify(text)}`, () => {
      assert.deepEqual(parsePathPattern(text), { refusal: `"${text}" is not a path for a route: ${reason}` });
    });
  }

  it('of a path has at most 100 segments', () => {
    const path = '/a'.repeat(100);
    assert.deepEqual(parsePathPattern(path), { value: path });
    assert.match((parsePathPattern(`${path}/a`) as { refusal: string }).refusal, /: it has more than 100 segments\.$/);
  });

  it('of a method is a token in capital letters', () => {
    for (const value of ['GET', 'M-SEARCH', 'BASELINE-CONTROL', "!#$%&'*+.^_`|~-9"])
      assert.deepEqual(parseMethod(value), { value });
    for (const text of ['', 'get', 'Get', 'GET POST', 'GET,POST', 'GÉT', 'G(T'])
      assert.deepEqual(parseMethod(text), {
        refusal: `"${text}" is not a method: write it in capital letters, as GET.`,
      });
  });
});
