import assert from 'node:assert/strict';
import { hasRedirect } from '../../../src/features/consent/clients.ts';
import { invalidRedirect, redirectTo } from '../../../src/features/consent/redirects.ts';

describe('a redirect URI', () => {
  it('is https, http on a loopback address, or of a scheme of the application, without a fragment or a user', () => {
    const right = [
      'https://app.example.org/done?from=keys',
      'http://127.0.0.1/done',
      'http://127.0.0.1:8080/done',
      'http://[::1]/done',
      'http://127.0.0.1',
      'http://localhost/done',
      'com.example.app:/done',
    ];
    for (const uri of right) assert.equal(invalidRedirect(uri), undefined, uri);
    const wrong = [
      '',
      'http://app.example.org/done',
      'http://localhost.example.org/done',
      'http://127.0.0.1.example.org/done',
      'https://app.example.org/done#there',
      'https://user@app.example.org/done',
      'https://app.example.org/d one',
      'https://app.example.org/\u202e',
      'javascript:alert(1)',
      'data:text/html,x',
      'app:/done',
      'com.example.app://done',
      `https://app.example.org/${'x'.repeat(1000)}`,
    ];
    for (const uri of wrong) assert.match(invalidRedirect(uri) ?? '', /is not a redirect URI/, uri);
  });

  it('is compared character by character, but for the port of a loopback address', () => {
    const isSameRedirect = (registered: string, given: string) =>
      hasRedirect({ id: 'app', name: 'App', redirects: [registered] }, given);
    assert.ok(isSameRedirect('http://127.0.0.1/done', 'http://127.0.0.1:5/done'));
    assert.ok(isSameRedirect('http://localhost/done', 'http://localhost:5/done'));
    assert.ok(isSameRedirect('http://127.0.0.1:80/done', 'http://127.0.0.1/done'));
    assert.ok(isSameRedirect('http://[::1]/done?a=b', 'http://[::1]:65535/done?a=b'));
    const different = [
      ['http://127.0.0.1/done', 'http://127.0.0.1:65536/done'],
      ['http://127.0.0.1/done', 'http://[::1]/done'],
      ['http://127.0.0.1/done', 'http://localhost/done'],
      ['http://127.0.0.1', 'http://127.0.0.1/'],
      ['https://app.example.org/done', 'https://app.example.org:443/done'],
    ];
    for (const [registered, given] of different) assert.ok(!isSameRedirect(registered!, given!), given);
  });

  it('keeps its query, with parameters appended', () => {
    assert.equal(
      redirectTo('https://a.example/done?x=1', { code: 'a b', state: null }),
      'https://a.example/done?x=1&code=a+b',
    );
    assert.equal(redirectTo('com.example.app:/done', { error: 'x' }), 'com.example.app:/done?error=x');
  });
});
