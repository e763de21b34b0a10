import { itRefuses } from '../../support/config-faults.ts';

describe('people in the configuration', () => {
  itRefuses([
    [
      'people: { headr: Remote-User, grant: { a: [ADMIN] } }',
      '1:11: "headr" is not a field. Did you mean "header"?',
      '1:44: "ADMIN" is not a permission. For a role, write role:ADMIN.',
    ],
    ['people: { header: Remote-User }', '1:9: The field "grant" is missing.', '1:19: The field "header" needs "trust"'],
    ['people: { grant: { "*": [role:GUEST] } }', '1:9: Set "header" for people signed in by a proxy'],
    [
      'people: { header: Cookie, grant: { a: [role:GUEST] } }',
      '1:19: The field "header" needs "trust", a list of the addresses of the proxy that signs people in, such as trust: [127.0.0.1].',
      '1:19: The header "Cookie" cannot identify people',
    ],
    [
      '{ trust: [], people: { header: Remote-User, grant: { a: [role:GUEST] } } }',
      '1:32: The field "header" needs "trust"',
    ],
    [
      'people: { oidc: { issuer: http://id.example.org, client-secret: x }, grant: { " a": [] } }',
      '1:17: The field "client-id" is missing.',
      '1:27: "http://id.example.org" is not an issuer. It must begin with https://, or with http:// on loopback',
      '1:65: Do not write the secret in this file. Write { file: <path> } with the path of its file.',
      '1:79: " a" is not a group',
      '1:85: The group " a" has no grants.',
    ],
  ]);
});
