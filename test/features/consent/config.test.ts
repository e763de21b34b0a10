import { itRefuses } from '../../support/config-faults.ts';

describe('applications in the configuration', () => {
  itRefuses([
    ['consent: false', '1:10: The field "consent" must be off, device, code or both.'],
    ['consent: bth', '1:10: Did you mean both? The field "consent" must be off, device, code or both.'],
    ['consent:', '1:9: The field "consent" must be off, device, code or both.'],
    ['clients: [{ id: a, name: A }]', '1:10: Clients are declared, but "consent" is missing'],
    ['clients: { id: x }', '1:12: "id" is not a field. The fields here are registered, metadata-documents'],
    ['clients: { registered: x }', '1:24: The field "registered" must be a list.'],
    [
      '{ consent: both, clients: { metadata-documents: all } }',
      '1:49: The field "metadata-documents" must be any, off',
    ],
    [
      '{ clients: { refresh: 30m } }',
      '1:23: The field "refresh" must be a map, such as { leeway: 30m, lifetime: 90d }.',
    ],
    ['{ clients: { refresh: { leeway: 31m } } }', '1:33: A leeway is at most 30m: secrets last an hour.'],
    ['{ clients: { refresh: { leeway: 5 } } }', '1:33: The field "leeway" must be text'],
    ['{ clients: { refresh: { leeway: soon } } }', '1:33: "soon" is not a duration.'],
    ['{ clients: { refresh: { lifetime: 59m } } }', '1:35: "59m" is too short. Choose 1h or more.'],
    ['{ clients: { refresh: { life: 1d } } }', '1:25: "life" is not a field. Did you mean "lifetime"?'],
    ['{ consent: both, clients: { metadata-documents: [] } }', '1:49: The field "metadata-documents" must be any, off'],
    [
      '{ consent: both, clients: { metadata-documents: [https://a.example] } }',
      '1:50: "https://a.example" is not a host',
    ],
    ['{ consent: both, clients: { dynamic-registration: 1 } }', '1:51: The field "dynamic-registration" must be true'],
    ['{ consent: device, clients: { dynamic-registration: true } }', '1:29: Clients that are not registered use pages'],
    ['clients: [{ id: a, name: A, refreshes: 1 }]', '1:40: The field "refreshes" must be true or false.'],
    ['clients: [wiki]', '1:11: A client must be a map'],
    ['clients: [{ id: wiki }]', '1:11: The field "name" is missing.'],
    ['clients: [{ id: svc-api, name: A }]', '1:17: "svc-api" is reserved for svc-api itself.'],
    ['clients: [{ id: a b, name: A }]', '1:17: "a b" is not a valid client id'],
    ['clients: [{ id: a, name: A-B }]', '1:26: The name may only contain letters, digits and spaces'],
    ['clients: [{ id: a, name: A }, { id: a, name: B }]', '1:31: "a" is declared more than once.'],
    ['clients: [{ id: a, name: A, secret: x }]', '1:29: "secret" is not a field.'],
    ['clients: [{ id: a, name: A, redirects: [http://a.example/] }]', '1:41: "http://a.example/" is not a redirect'],
  ]);
});
