import assert from 'node:assert/strict';
import { nearest } from '../../../src/keys/basics/nearest.ts';

describe('the words nearest to a misspelled one', () => {
  it('come best first, and three at most', () => {
    assert.deepEqual(nearest('blogs', ['FROGS', 'LOGOFF', 'LOGS', 'BLIGS']), ['LOGS', 'BLIGS', 'FROGS']);
    const likeLogs = ['LOGOS', 'LOBS', 'LAGS', 'DOGS'];
    assert.deepEqual(nearest('logs', likeLogs), ['LOGOS', 'LOBS', 'LAGS']);
    assert.deepEqual(nearest('logs', likeLogs, 1), ['LOGOS']);
  });

  it('have one that begins with it, or that it begins with, among the close ones', () => {
    assert.deepEqual(nearest('custom', ['CUSTOMIZATIONS']), ['CUSTOMIZATIONS']);
    assert.deepEqual(nearest('owners_of_it', ['OWNER', 'OF_IT']), ['OWNER']);
    assert.deepEqual(nearest('cu', ['CUSTOMIZATIONS']), []);
  });

  it('do not exist if all are far', () => {
    assert.deepEqual(nearest('printer', ['DOCKER', 'LOGS']), []);
  });
});
