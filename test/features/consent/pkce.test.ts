import assert from 'node:assert/strict';
import { answersChallenge, isChallenge } from '../../../src/features/consent/pkce.ts';

describe('a verifier', () => {
  // RFC 7636, appendix B.
  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
  const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

  it('answers the challenge that was made of it', () => {
    assert.ok(isChallenge(challenge));
    assert.ok(answersChallenge(verifier, challenge));
  });

  it('of another form or content does not', () => {
    for (const wrong of ['', challenge, `${verifier}A`, verifier.toLowerCase(), 'a'.repeat(42), 'a'.repeat(129)])
      assert.ok(!answersChallenge(wrong, challenge), wrong);
    for (const wrong of ['', verifier.slice(1), `${challenge}=`, `${challenge}A`])
      assert.ok(!isChallenge(wrong), wrong);
  });
});
