import assert from 'node:assert/strict';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { failureOf, parseExpectation } from '../../../src/features/routes/decide.ts';
import { createRouter } from '../../../src/features/routes/router.ts';
import { route } from './support/routes.ts';

const catalog = createCatalog({ resources: ['GRAFANA', 'WIKI'] });
const router = createRouter([
  route('GET,HEAD grafana.example.org/api/dashboards/**', 'GRAFANA:READ_ANY'),
  route('grafana.example.org/api/**', 'GRAFANA:UPDATE_ANY+WIKI:READ_ANY'),
  route('grafana.example.org/any/**', 'GRAFANA:READ_ANY|WIKI:READ_ANY'),
  route('grafana.example.org/public/**', 'open'),
  route('bücher.example/ü', 'key'),
]);
const G = 'https://grafana.example.org';

function failure(text: string): string | undefined {
  const parsed = parseExpectation(text, catalog);
  assert.ok('value' in parsed, text);
  return failureOf(parsed.value, router);
}

describe('an expectation', () => {
  const HOLD = [
    `GET ${G}/api/dashboards/7 with GRAFANA:READ_ANY is allowed`,
    `POST ${G}/api/dashboards/7 with GRAFANA:READ_ANY is forbidden`,
    `POST ${G}/api/dashboards/7 with grafana:update_any,wiki:read_any is allowed`,
    `GET ${G}/api/dashboards/7 without a key is refused`,
    `GET ${G}/api/dashboards/7?x=/../ with any key is forbidden`,
    `  GET   ${G}/public/x  without a key   is allowed `,
    `GET ${G} without a key is forbidden`,
    `GET ${G}?x without a key is forbidden`,
    `GET ${G}/public/../api/x without a key is forbidden`,
    `GET ${G}/public/x#y without a key is forbidden`,
    'GET http://BÜCHER.example:8080/ü with any key is allowed',
    'GET https://[::1]/ with any key is forbidden',
  ];
  for (const text of HOLD) it(`holds: ${text}`, () => assert.equal(failure(text), undefined));

  const FAIL: Record<string, string> = {
    [`GET ${G}/api/dashboards/7 with any key is allowed`]:
      'forbidden by route 1 (GET, HEAD grafana.example.org/api/dashboards/**), as the key lacks GRAFANA:READ_ANY',
    [`PUT ${G}/api/x with DOCKER:READ_ANY is allowed`]:
      'forbidden by route 2 (grafana.example.org/api/**), as the key lacks GRAFANA:UPDATE_ANY and WIKI:READ_ANY',
    [`PUT ${G}/any with any key is allowed`]:
      'forbidden by route 3 (grafana.example.org/any/**), as the key lacks GRAFANA:READ_ANY or WIKI:READ_ANY',
    [`PUT ${G}/any without a key is forbidden`]:
      'refused by route 3 (grafana.example.org/any/**), which requires GRAFANA:READ_ANY or WIKI:READ_ANY',
    'GET https://bücher.example/ü without a key is allowed':
      'refused by route 5 (bücher.example/ü), which requires a valid key',
    [`GET ${G}/public/ without a key is refused`]: 'allowed by route 4 (grafana.example.org/public/**)',
    [`GET ${G}/other with any key is allowed`]: 'forbidden, as no route matches',
    [`GET ${G}/public/../x without a key is allowed`]: 'forbidden, as the path has a "." or ".." segment',
  };
  for (const [text, instead] of Object.entries(FAIL)) {
    it(`fails: ${text}`, () => assert.equal(failure(text), `"${text}" does not hold: the request is ${instead}.`));
  }

  const HOW =
    'Write it as "GET https://wiki.example.org/path with WIKI:READ_ANY is allowed". The part about the ' +
    'key can also be "with any key" or "without a key", and the answer "is refused" or "is forbidden".';
  for (const text of [
    '',
    'GET',
    `GET ${G}/`,
    `GET ${G}/ is allowed`,
    `GET ${G}/ with is allowed`,
    `GET ${G}/ without key is allowed`,
    `GET ${G}/ without a key was allowed`,
    `GET ${G}/ without a key is ok`,
    `GET ${G}/ without a key is toString`,
    `GET ${G}/ without a key is allowed now`,
  ]) {
    it(`is not ${JSON.stringify(text)}`, () => {
      assert.deepEqual(parseExpectation(text, catalog), { refusal: [`"${text}" is not an expectation. ${HOW}`] });
    });
  }

  it('names all that is wrong with its request and its permissions', () => {
    const URL_FAULT = 'is not a URL';
    assert.deepEqual(parseExpectation('GET grafana/ with GRAFANA:REED_ANY, WIKKI:READ_ANY is allowed', catalog), {
      refusal: [
        `"grafana/" ${URL_FAULT}. Write it as https://example.org/path.`,
        '"GRAFANA:REED_ANY" is not a permission: "REED_ANY" is not an action. Did you mean READ_ANY?',
        '"WIKKI:READ_ANY" is not a permission: "WIKKI" is not a resource. Did you mean WIKI?',
      ],
    });
    assert.deepEqual(parseExpectation('get https://user@a/ with any key is allowed', catalog), {
      refusal: ['"get" is not a method: write it in capital letters, as GET.'],
    });
    assert.deepEqual(parseExpectation('GET https://user@a/ with any key is allowed', catalog), {
      refusal: [
        '"https://user@a/" is not a URL: the host is not a name or an address. Write it as https://example.org/path.',
      ],
    });
  });
});
