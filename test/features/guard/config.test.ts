import { itRefuses } from '../../support/config-faults.ts';

describe('signing in, in the configuration', () => {
  itRefuses([
    ['sign-in: true', '1:10: The field "sign-in" must be on or off.'],
    ['sign-in:', '1:9: The field "sign-in" must be on or off.'],
    ['sign-in: { url: "https://keys.example.org" }', '1:10: The field "sign-in" must be on or off.'],
  ]);
});
