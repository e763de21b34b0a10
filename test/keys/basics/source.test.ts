import assert from 'node:assert/strict';
import { sourceOf } from '../../../src/keys/basics/source.ts';

describe('the source of requests', () => {
  for (const [address, source] of [
    ['192.0.2.1', '0000c00000020001'],
    ['::ffff:192.0.2.1', '0000c00000020001'],
    ['::ffff:c000:201', '0000c00000020001'],
    ['0:0:0:0:0:FFFF:192.0.2.1', '0000c00000020001'],
    ['2001:db8::1', '20010db800000000'],
    ['2001:DB8:0:0:7::', '20010db800000000'],
    ['2001:db8:a:b:c:d:e:f', '20010db8000a000b'],
    ['fe80::1%eth0', 'fe80000000000000'],
    ['::1', '0000000000000000'],
    ['64:ff9b::192.0.2.1', '0064ff9b00000000'],
  ] as const)
    it(`of ${address} is ${source}, and its network begins so`, () => {
      assert.deepEqual(sourceOf(address), { source, network: source.slice(0, 12) });
    });

  it('is the same for all unknown or invalid addresses', () => {
    for (const address of [undefined, '', 'unknown', '1.2.3', '::x'])
      assert.deepEqual(sourceOf(address), { source: '', network: '' });
  });
});
