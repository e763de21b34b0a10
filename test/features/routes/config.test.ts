import assert from 'node:assert/strict';
import { faultsIn, itRefuses } from '../../support/config-faults.ts';

describe('routes in the configuration', () => {
  itRefuses([
    [
      'routes: [{ host: "*", pth: /, allow: key }, { host: h, location: /x, allow: open }]',
      '1:23: "pth" is not a field. Did you mean "path"?',
      '1:56: "location" is not a field. The fields here are host, path, methods,',
    ],
    ...[
      ['observe: false, allow: key', 'The field "observe" must be true, or left out.'],
      ['observe: true, allow: open', 'An open route refuses nothing that could be observed. Leave "observe" out.'],
      [
        'observe: true, allow: key, mcp: { tools: ["*"] }',
        'With "mcp", leave out "observe": single tools are not observed.',
      ],
      [
        'observe: true, allow: key, to: s',
        'With "observe", anyone could use the credentials sent to "s". Leave it out.',
      ],
    ].map(([fields, problem]): [string, string] => [
      `routes: [{ ${fields}, host: a, path: / }]\nupstreams: { s: { url: "http://127.0.0.1:1", send: { X: { file: s } } } }`,
      `1:21: ${problem}`,
    ]),
    ['routes: { host: "*" }', '1:9: The field "routes" must be a list.'],
    ['routes: [7]', '1:10: A route must be a map'],
    ['routes: [{ path: /, allow: key }]', '1:10: The field "host" is missing. Write "*" for every host.'],
    ['routes: [{ host: "*", allow: key }]', '1:10: The field "path" is missing.'],
    ['routes: [{ host: "*", path: / }]', '1:10: The field "allow" is missing.'],
    ['routes: [{ host: "*", path: /, resource: WIKI }]', '1:42: "WIKI" is not a resource.'],
    ['routes: [{ host: "*", path: /, resource: "" }]', '1:42: '],
    ['routes: [{ host: "*", path: /, resource: [DOCKER] }]', '1:42: The field "resource" must be text.'],
    ['routes: [{ host: "*", path: /, resource: DOCKER, allow: key }]', '1:42: Both "allow" and "resource" are set'],
    ['routes: [{ host: "*", path: /, allow: key, cross-site: open }]', '1:56: The field "cross-site" must be allowed'],
    ['routes: [{ host: "*", path: x, allow: key }]', '1:29: "x" is not a path for a route'],
    ['routes: [{ host: a:80, path: /, allow: key }]', '1:18: "a:80" is not a host for a route'],
    ['routes: [{ host: 7, path: /, allow: key }]', '1:18: The field "host" must be text.'],
    ['routes: [{ host: "*", path: /, allow: key, methods: [] }]', '1:53: The list "methods" is empty'],
    ['routes: [{ host: "*", path: /, allow: key, methods: [get] }]', '1:54: "get" is not a method'],
    ['routes: [{ host: "*", path: /, allow: key, preflight: shut }]', '1:55: The field "preflight" must be open'],
    ['routes: [{ host: "*", path: /, allow: key, name: a }]', '1:44: "name" is not a field.'],
    ['routes: [{ host: "*", path: /, allow: [] }]', '1:39: The field "allow" has no permission.'],
    ['routes: [{ host: "*", path: /, allow: { any: [] } }]', '1:46: The field "any" has no permission.'],
    ['routes: [{ host: "*", path: /, allow: { all: [ME:READ_OWN] } }]', '1:39: The value of "allow" is unknown'],
    ['routes: [{ host: "*", path: /, allow: true }]', '1:39: The value of "allow" is unknown'],
    ['routes: [{ host: "*", path: /, allow: WIKI:READ_ANY }]', '1:39: "WIKI:READ_ANY" is not a permission'],
    ['expect: GET', '1:9: The field "expect" must be a list.'],
    ['expect: [7, GET / is nice]', '1:10: An item of this list must be text.', '1:13: "GET / is nice" is not an'],
    ['upstreams: [wiki]', '1:12: The field "upstreams" must be a map of names to addresses.'],
    ['upstreams: { wi/ki: "http://a" }', '1:14: "wi/ki" is not a valid name of an upstream.'],
    ['upstreams: { wiki: 7 }', '1:20: An upstream must be an address, such as http://127.0.0.1:3000, or a map'],
    [
      'upstreams: { wiki: "a:80" }',
      '1:20: "a:80" is not the address of an upstream. Did you mean http://a? Write it as http://127.0.0.1:3000,',
    ],
    ['upstreams: { wiki: { uri: "http://a" } }', '1:22: "uri" is not a field. Did you mean "url"?'],
    ['upstreams: { wiki: { url: "http://a/b" } }', '1:27: "http://a/b" must not have a path'],
    ['upstreams: { wiki: {} }', '1:20: The field "url" is missing.'],
    [
      'upstreams: { w: { url: "http://a", send: { X-Key: s3cret } } }',
      '1:51: "X-Key" must name the file of the credential',
    ],
    ['upstreams: { w: { url: "http://a", send: {} } }', '1:42: The field "send" must be a map, such as { X-Api-Key:'],
    ['upstreams: { w: { url: "http://a", send: { X-Key: {} } } }', '1:51: The field "file" is missing.'],
    ['upstreams: { w: { url: "http://a", send: { X-Key: { file: "" } } } }', '1:59: The field "file" must be the path'],
    [
      'upstreams: { w: { url: "http://a", send: { Host: { file: f } } } }',
      '1:44: The header "Host" cannot be sent: it is',
    ],
    [
      'upstreams: { w: { url: "http://a", query: { "a&b": { file: f } } } }',
      '1:45: The parameter "a&b" cannot be sent',
    ],
    [
      'upstreams: { w: { url: "http://a", send: { a-b: { file: f }, A_B: { file: f } } } }',
      '1:17: The header A_B is sent twice.',
    ],
    ['upstreams: { w: { url: "http://a", passHeaders: Remote-User } }', '1:49: The field "passHeaders" must be a list'],
    [
      'upstreams: { w: { url: "http://a", passHeaders: [Remote-User, Cookie] } }',
      '1:63: The header "Cookie" cannot be passed on: it does not identify the caller.',
    ],
    [
      'upstreams: { w: { url: "http://a", passHeaders: [Remote_User] } }',
      '1:50: The header "Remote_User" cannot be passed on: it is not a name of letters,',
    ],
    [
      'upstreams: { w: { url: "http://a", passHeaders: [X-Auth-Roles] } }',
      '1:50: The header "X-Auth-Roles" cannot be passed on: it is written by the guard itself.',
    ],
    ['upstreams: { w: { url: "http://a", basic: { user: a } } }', '1:43: The field "password" is missing.'],
    [
      'upstreams: { w: { url: "http://a", basic: { user: "a:b", password: { file: f } } } }',
      '1:51: The field "user" has a colon',
    ],
    [
      'routes: [{ host: a, path: /, allow: key, to: b }]',
      '1:46: The upstream "b" does not exist. There is no field "upstreams".',
    ],
    ['routes: [{ host: a, path: /, allow: key, limit: 10/budget }]', '1:49: "10/budget" is not a limit.'],
    ['routes: [{ host: a, path: /, allow: key, limit: "" }]', '1:49: A limit is empty.'],
    ['routes: [{ host: a, path: /, allow: key, cost: 0 }]', '1:48: The field "cost" must be a whole number from 1'],
    ['routes: [{ host: a, path: /, allow: key, cost: 1.5 }]', '1:48: The field "cost" must be a whole number from 1'],
    [
      'routes: [{ host: a, path: /, allow: open, cost: 2 }]',
      '1:49: The field "cost" is for keys, and this route needs',
    ],
    [
      'routes: [{ host: a, path: /, allow: key, limit: 2/m, cost: 3 }]',
      '1:60: A request with the cost 3 always exceeds',
    ],
    [
      'routes: [{ host: a, path: /, allow: key, limit: 2/m }, { host: a, path: /, allow: key }]',
      '1:56: Routes 1 and 2 are both for a/ and say different things.',
    ],
    ['routes: [{ host: a, path: /, allow: key, mcp: [] }]', '1:47: The field "mcp" must be a map with at least one of'],
    ['routes: [{ host: a, path: /, allow: key, mcp: {} }]', '1:47: The field "mcp" must be a map with at least one of'],
    [
      'routes: [{ host: a, path: /, allow: key, mcp: { tool: [a] } }]',
      '1:49: "tool" is not a field. Did you mean "tools"?',
    ],
    ['routes: [{ host: a, path: /, allow: key, mcp: { tools: [] } }]', '1:56: The list "tools" is empty.'],
    ['routes: [{ host: a, path: /, allow: key, mcp: { tools: [""] } }]', '1:57: An item of this list is empty.'],
    ['routes: [{ host: a, path: /, allow: open, mcp: { tools: [a] } }]', '1:48: With "mcp", the field "allow" must be'],
    [
      'routes: [{ host: a, path: /, allow: key, methods: [POST], mcp: { tools: [a] } }]',
      '1:51: With "mcp", leave out "methods"',
    ],
    [
      'upstreams: { wiki: "http://a" }\nroutes: [{ host: a, path: /, allow: key, to: wikki }]',
      '2:46: Did you mean wiki? The upstream "wikki" does not exist. The upstreams are wiki.',
    ],
  ]);

  it('are refused if they contradict one another, with both lines, or are not as expected', async () => {
    assert.deepEqual(
      await faultsIn(`routes:
  - { host: example.org, path: /a, allow: key }
  - { host: example.org, path: /b, allow: open }
  - { host: EXAMPLE.org, path: /a/, allow: open }
expect:
  - GET https://example.org/b without a key is allowed
  - GET https://example.org/c with any key is allowed
`),
      [
        '4:5: Routes 1 and 3 are both for example.org/a and say different things. Keep one of them. ' +
          'The other one is in line 2.',
        '7:5: "GET https://example.org/c with any key is allowed" does not hold: the request is forbidden, as no route matches.',
      ],
    );
  });
});
