import assert from 'node:assert/strict';
import { canonicalHost } from '../../../src/features/routes/request.ts';

describe('a host', () => {
  const SAME: Record<string, string> = {
    'example.org': 'example.org',
    'EXAMPLE.Org': 'example.org',
    'example.org.': 'example.org',
    'example.org:80': 'example.org',
    'example.org:443': 'example.org',
    'example.org:8443': 'example.org',
    'example.org:': 'example.org',
    'example.org.:443': 'example.org',
    my_service: 'my_service',
    localhost: 'localhost',
    '127.0.0.1': '127.0.0.1',
    '127.0.0.1:4000': '127.0.0.1',
    '[::1]': '[::1]',
    '[::1]:4000': '[::1]',
    '[0:0:0:0:0:0:0:1]': '[::1]',
    '[2001:DB8::0:1]': '[2001:db8::1]',
    'bücher.example': 'xn--bcher-kva.example',
    'BÜCHER.example': 'xn--bcher-kva.example',
    'XN--BCHER-KVA.example': 'xn--bcher-kva.example',
    'faß.example': 'xn--fa-hia.example',
    '3com.example': '3com.example',
    'a-.example': 'a-.example',
  };
  for (const [host, canonical] of Object.entries(SAME)) {
    it(`${host} is compared as ${canonical}`, () => assert.deepEqual(canonicalHost(host), { value: canonical }));
  }

  const NAMELESS = [
    ['a b', 'a\tb', 'a\0', 'a/b', 'a\\b', 'a@b', 'a?b', 'a#b', 'a%62', 'a..b', '.a', 'a..', '*', '*.a', 'a,b', 'a:b'],
    ['a:123456', '::1', '[::1', '[::1]x', '[::g]', '[fe80::1%25eth0]', '[]', '127.1', '0x7f.0.0.1', '2130706433'],
    ['0177.0.0.1', '1.2.3.256', '1.2.3', '１２７.0.0.1', 'a\u00adb.example', 'a。b', '\u202ea', 'exam\u200bple.org'],
    ['😀', '\ud800', 'a.0x7f'],
  ].flat();
  for (const host of NAMELESS) {
    it(`${JSON.stringify(host)} is refused`, () => {
      assert.deepEqual(canonicalHost(host), { refusal: 'the host is not a name or an address' });
    });
  }

  it('is refused if it is empty or too long', () => {
    for (const host of ['', '.', ':80', '.:80'])
      assert.deepEqual(canonicalHost(host), { refusal: 'the host is empty' });
    const longest = `${'a'.repeat(49)}.`.repeat(5) + 'abc';
    assert.equal(longest.length, 253);
    assert.deepEqual(canonicalHost(`${longest}.:65535`), { value: longest });
    for (const host of [`${longest}d`, 'a'.repeat(100_000), 'é.'.repeat(100)])
      assert.deepEqual(canonicalHost(host), { refusal: 'the host is too long' });
  });
});
