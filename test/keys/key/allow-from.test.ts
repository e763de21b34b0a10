import assert from 'node:assert/strict';
import { areWithin, parseNetworks, validateNetworks } from '../../../src/keys/key/allow-from.ts';
import { Networks } from '../../../src/keys/basics/networks.ts';

const messageOf = (text: string) => parseNetworks([text]).issues[0]?.message;

describe('the networks that a key may be used from', () => {
  it('get one form, each once', () => {
    const written = [' 10.0.0.0/8', '2001:DB8:0:0::/32', '192.0.2.7/32', '::1/128', '10.0.0.0/8', '0.0.0.0/0', '::/0'];
    const values = ['10.0.0.0/8', '2001:db8::/32', '192.0.2.7', '::1', '0.0.0.0/0', '::/0'];
    assert.deepEqual(parseNetworks(written), { values, issues: [] });
    for (const text of ['64:ff9b::192.0.2.1', '2001:db8:8000::/33', '1::8/127', '128.0.0.0/1', 'fe80::/10'])
      assert.deepEqual(parseNetworks([text]).issues, [], text);
  });

  it('of IPv6 are as short as can be', () => {
    for (const [text, short] of [
      ['2001:0DB8:0000:0000:0008:0800:200C:417A', '2001:db8::8:800:200c:417a'],
      ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
      ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
      ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
      ['0:0:1::', '0:0:1::'],
      ['1:0:0:0:0:0:0:0/16', '1::/16'],
      ['::1:2:3:4:5:6:7', '0:1:2:3:4:5:6:7'],
      ['::1.2.3.4', '::1.2.3.4'],
      ['::102:304', '::1.2.3.4'],
      ['64:FF9B::192.0.2.1', '64:ff9b::c000:201'],
      ['::ffff:1:2:3', '::ffff:1:2:3'],
    ])
      assert.deepEqual(parseNetworks([text!]), { values: [short], issues: [] });
    for (const text of ['::ffff:1:2', '0:0:0:0:0:FFFF::', '::ffff:0:0/96'])
      assert.equal(messageOf(text), `"${text}" is IPv4 within IPv6. Write the IPv4 network alone.`);
  });

  it('are no other texts', () => {
    for (const text of [
      '10.0.0.0/33',
      '2001:db8::/129',
      '10.0.0',
      '010.0.0.0/8',
      'fe80::1%eth0',
      'example.org',
      '10.0.0.0/-1',
    ])
      assert.equal(messageOf(text), `"${text}" is not a network. Write it as 10.0.0.0/8 or 2001:db8::/32.`);
    assert.equal(messageOf(' '), 'A network is empty. Write it as 10.0.0.0/8 or 2001:db8::/32.');
    assert.equal(
      messageOf('::ffff:10.0.0.0/104'),
      '"::ffff:10.0.0.0/104" is IPv4 within IPv6. Write the IPv4 network alone.',
    );
    assert.match(messageOf(`${'1'.repeat(50_000)}/8`) ?? '', /^"1{60}…" is not a network\./);
  });

  it('have no bits beyond their prefix, since these are ambiguous', () => {
    for (const [text, network, address] of [
      ['10.1.2.3/8', '10.0.0.0/8', '10.1.2.3'],
      ['192.0.2.255/31', '192.0.2.254/31', '192.0.2.255'],
      ['2001:db8:1::/32', '2001:db8::/32', '2001:db8:1::'],
      ['::1.2.3.4/100', '::/100', '::1.2.3.4'],
      ['2001:db8::1/127', '2001:db8::/127', '2001:db8::1'],
    ])
      assert.equal(
        messageOf(text!),
        `"${text}" has bits beyond its first ${text!.split('/')[1]}. Write ${network}, or ${address} for the address.`,
      );
  });

  it('are one at least, and 100 at most', () => {
    assert.equal(validateNetworks([])[0]?.code, 'NETWORK_INVALID');
    const many = Array.from({ length: 101 }, (_, index) => `10.0.0.${index}`);
    assert.deepEqual(validateNetworks(many.slice(1)), []);
    assert.deepEqual(validateNetworks(many), [
      { code: 'NETWORK_INVALID', message: '101 networks are given; at most 100 are allowed.' },
    ]);
  });

  it('are within others where each lies in one of them', () => {
    assert.ok(areWithin(['10.1.0.0/16', '::1'], ['::/0', '10.0.0.0/8']));
    assert.ok(areWithin(['10.0.0.0/8'], ['10.0.0.0/8']));
    for (const [inner, outer] of [
      ['10.0.0.0/8', '10.0.0.0/9'],
      ['10.0.0.0/8', '::/0'],
      ['::/0', '0.0.0.0/0'],
      ['11.0.0.0/16', '10.0.0.0/8'],
    ])
      assert.equal(areWithin([inner!], [outer!]), false);
  });
});

describe('a list of networks', () => {
  it('has only addresses of its own family; IPv4 within IPv6 counts as IPv4', () => {
    const includes = (network: string, address: string) => new Networks([network]).includes(address);
    for (const address of ['1.2.3.4', '::ffff:1.2.3.4', '::ffff:0102:0304', '0:0:0:0:0:ffff:1.2.3.4']) {
      assert.equal(includes('::/0', address), false, address);
      assert.equal(includes('1.2.0.0/16', address), true, address);
    }
    assert.deepEqual(
      [includes('::/0', '::1'), includes('::/0', 'nobody'), includes('0.0.0.0/0', '::1')],
      [true, false, false],
    );
  });
});
