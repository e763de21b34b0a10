import assert from 'node:assert/strict';
import { isLoopback, readServerUrl } from '../../../src/cli/with-keys.ts';

const SERVER = 'https://keys.example.org';

describe('the address of a server', () => {
  it('is compared in one form', () => {
    for (const [text, url] of [
      ['https://Keys.Example.org', SERVER],
      [' https://keys.example.org:443/graphql ', SERVER],
      ['http://127.0.0.1:4000/', 'http://127.0.0.1:4000'],
      ['https://example.org/keys//', 'https://example.org/keys'],
    ] as const)
      assert.equal(readServerUrl(text), url);
  });

  it('is refused with more than that, without showing a password', () => {
    for (const text of [
      'keys.example.org',
      'ftp://a',
      '',
      'https://u:hidden@a',
      'https://u:hidden@',
      'https://a?hidden=1',
      'https://a#x',
    ])
      assert.throws(
        () => readServerUrl(text),
        (error: Error & { code: string }) => error.code === 'USAGE' && !error.message.includes('hidden'),
        text,
      );
  });

  it('is on this machine, or elsewhere', () => {
    for (const url of ['http://localhost:1', 'http://127.1.2.3', 'http://[::1]:4000']) assert.ok(isLoopback(url), url);
    for (const url of ['http://127.0.0.1.example', 'http://10.0.0.1', 'http://localhost.example', 'http://[::2]'])
      assert.ok(!isLoopback(url), url);
  });
});
