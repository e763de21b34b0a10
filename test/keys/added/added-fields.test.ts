import assert from 'node:assert/strict';
import { addFields, type FeatureOfFields } from '../../../src/keys/added/index.ts';
import { isKeysError } from '../../../src/keys/basics/index.ts';
import type { Feature } from '../../../src/plugin.ts';
import { takenNames } from '../../../src/cli/plugins/taken-names.ts';

const LINE = { kind: 'line', label: 'Floor', help: 'Floor of the key.' };

/** The error for invalid features. */
function refusalOf(...features: readonly unknown[]): string {
  try {
    addFields(features as FeatureOfFields[], takenNames());
  } catch (error) {
    assert.ok(isKeysError(error) && error.code === 'FEATURE_INVALID', `${error as Error}`);
    return error.message;
  }
  return 'none';
}

/** Every member of the public type. */
const MEMBERS: Record<keyof Feature, true> = {
  name: true,
  needs: true,
  fields: true,
  errors: true,
  onKeys: true,
  store: true,
  operations: true,
  remote: true,
  schema: true,
  routes: true,
  background: true,
  resources: true,
  actions: true,
  metrics: true,
  config: true,
  notices: true,
  checks: true,
};

describe('a feature of a plugin', () => {
  it('can have the members of its type, and no others', () => {
    const isKnown = (member: string) =>
      !refusalOf({ name: 'svc-api-floor', [member]: null }).includes('not a property');
    for (const member of Object.keys(MEMBERS)) if (member !== 'name') assert.ok(isKnown(member), member);
    for (const member of ['provides', 'inPrimary']) assert.ok(!isKnown(member), member);
  });
});

describe('checks of plugins', () => {
  const withChecks = (...checks: unknown[]) => refusalOf({ name: '@svc/api.floor', checks });
  const run = async () => [];

  it('begin with the name of the package, in capital letters', () => {
    for (const name of ['SVC_API_FLOOR', 'SVC_API_FLOOR_2']) assert.match(withChecks({ name, run }), /added too late/);
    for (const name of ['STORE', 'SVC_API_FLOORS', 'svc_api_floor', 'SVC_API_FLOOR-2', 'SVC_API_FLOOR é'])
      assert.match(withChecks({ name, run }), /@svc\/api\.floor.*check .* must be named "SVC_API_FLOOR"/);
  });

  it('have a name and a function, and each another name', () => {
    const name = 'SVC_API_FLOOR';
    assert.match(withChecks({ name, run }, { name, run }), /It has two checks "SVC_API_FLOOR"/);
    for (const check of [{ name }, { run }, { name, run, does: 'x' }, { name, run: 'x' }, null])
      assert.match(withChecks(check), /@svc\/api\.floor is invalid/);
  });
});

describe('fields of plugins', () => {
  const withFloor = (field: unknown) => refusalOf({ name: 'svc-api-floor', fields: { floor: field } });
  const named = (name: string) => refusalOf({ name: 'svc-api-floor', fields: { [name]: LINE } });
  const cases = (refuse: (given: never) => string, table: readonly (readonly [unknown, ...RegExp[]])[]) => {
    for (const [given, ...expected] of table) {
      const message = refuse(given as never);
      for (const each of [/svc-api-floor/, ...expected]) assert.match(message, each, JSON.stringify(given));
    }
  };

  it('have a name that is valid, and that nothing else has', () => {
    for (const name of [
      'description',
      'createdAt',
      'database',
      'owner',
      'limits',
      'json',
      'first',
      'allowFrom',
      'color',
      'lastused',
      'allowfrom',
    ])
      assert.match(named(name), new RegExp(`svc-api-floor.*"${name}" has a name that svc-api uses itself`));
    for (const name of [
      'Floor',
      'cost-centre',
      'toString',
      'whereFloor',
      'noFloor',
      '__typename',
      'a',
      'x'.repeat(41),
      'a.floor',
      'x.owner',
    ])
      assert.ok(
        named(name).startsWith(`The feature svc-api-floor is invalid. Its field "${name}" has no valid name`),
        name,
      );
    const other = { name: 'other', fields: { floor: LINE } };
    assert.match(
      refusalOf({ name: 'svc-api-floor', fields: { floor: LINE } }, other),
      /other is invalid. svc-api-floor has a field "floor"/,
    );
    for (const names of [
      ['upperFloor', 'upperfloor'],
      ['upperfloor', 'upperFloor'],
    ]) {
      const fields = Object.fromEntries(names.map((name) => [name, LINE]));
      assert.match(refusalOf({ name: 'svc-api-floor', fields }), new RegExp(`has a field "${names[0]}"`));
    }
    assert.match(refusalOf(other, { name: 'other' }), /Another feature has this name/);
  });

  it('are described by the properties of their kind', () => {
    cases(withFloor, [
      [{ ...LINE, kind: 'lien' }, /"lien"/, /Did you mean line/],
      [{ ...LINE, kind: undefined }, /kind undefined/, /line, text, number, choice, flag, time, json and list/],
      [null, /kind/],
      [{ ...LINE, filtre: true }, /"fields.floor.filtre" is not a property. Did you mean filter/],
      [{ ...LINE, values: ['A'] }, /values/],
      [{ kind: 'line', help: 'Floor.' }, /"fields.floor.label" is missing/],
      [{ ...LINE, help: 'Two\nlines' }, /help/, /one line/],
      [{ ...LINE, label: '' }, /label/, /empty/],
      [{ ...LINE, max: 0 }, /max/, /from 1 to 1000/],
      [{ ...LINE, asked: 'yes' }, /asked/, /true or false/],
      [{ ...LINE, kind: 'number', min: 2, max: 1 }, /"min" above its "max"/],
      [{ ...LINE, kind: 'number', max: 2 ** 60 }, /max.*9007199254740991/],
      [{ ...LINE, kind: 'number', max: '1' }, /max.*a number/],
      [{ ...LINE, kind: 'number', integer: true, max: 2 ** 40 }, /"min" or "max".*32 bits/],
      [{ ...LINE, kind: 'number', integer: true, min: 0.5 }, /whole number/],
      [{ ...LINE, kind: 'number', integer: 'yes' }, /integer.*true or false/],
      [{ ...LINE, removable: 'no' }, /removable.*true or false/],
      [{ ...LINE, removeable: true }, /Did you mean removable/],
      [{ ...LINE, kind: 'text', max: 4001 }, /max.*from 1 to 4000/],
      [{ ...LINE, kind: 'text', filter: true }, /filter" is not a property/],
      [{ ...LINE, kind: 'list', of: 'json' }, /"floor" is a list of "json". A list can be of line, number or choice/],
      [{ ...LINE, kind: 'list', of: 'list' }, /a list of "list"/],
      [{ ...LINE, kind: 'list', of: 'flag' }, /a list of "flag"/],
      [{ ...LINE, kind: 'list', of: 'nubmer' }, /Did you mean number/],
      [{ ...LINE, kind: 'list', of: ['line'] }, /a list of a list/],
      [{ ...LINE, kind: 'list', min: 1 }, /min" is not a property/],
      [{ ...LINE, kind: 'list', of: 'number', max: 1, min: 2 }, /"min" above its "max"/],
      [{ ...LINE, kind: 'list', of: 'number', values: ['A'] }, /values" is not a property/],
      [{ ...LINE, kind: 'list', of: 'choice' }, /values" is missing/],
      [{ ...LINE, kind: 'list', of: 'choice', values: [] }, /empty list/],
      [{ ...LINE, kind: 'list', of: 'choice', values: ['a,b'] }, /comma or semicolon/],
      [{ ...LINE, kind: 'choice' }, /values" is missing/],
      [{ ...LINE, kind: 'choice', values: [] }, /empty list/],
      [{ ...LINE, kind: 'choice', values: ['A', 'A'] }, /equal/],
      [{ ...LINE, kind: 'choice', values: ['A', ' A'] }, /spaces/],
      [{ ...LINE, kind: 'choice', values: ['e\u0301'] }, /NFC/],
      [{ ...LINE, kind: 'list', items: 101 }, /items/],
      [{ ...LINE, max: 501, filter: true }, /"filter".*more than 500/],
      [{ ...LINE, kind: 'list', max: 501, filter: true }, /"filter".*more than 500/],
      [{ ...LINE, kind: 'json', bytes: 5000 }, /bytes.*4096/],
      [{ ...LINE, kind: 'json', filter: true }, /filter" is not a property/],
      [{ ...LINE, kind: 'time', filter: true }, /filter" is not a property/],
    ]);
  });

  it('belong to an object with the name of its package', () => {
    cases(
      (more: object) => refusalOf({ name: 'svc-api-floor', ...more }),
      [
        [{ feilds: {} }, /"feilds" is not a property. Did you mean fields/],
        [{ fields: [] }, /"fields"/],
        [{ needs: 'guard' }, /"needs".*must be a list/],
        [{ actions: ['READ_ANY'] }, /"READ_ANY" is a built-in action/],
        [{ actions: ['publish'] }, /"publish" is not the name of an action/],
        [{ actions: ['PUBLISH', 'PUBLISH'] }, /"actions" has "PUBLISH" twice/],
        [{ routes: {} }, /"routes".*must be a function/],
        [{ onKeys: { change: () => {} } }, /"onKeys.change" is not a property. Did you mean changed/],
        [{ onKeys: { used: () => {} } }, /"onKeys.used" is not a property/],
      ],
    );
    for (const feature of [null, 'x', {}, { name: 'Has Spaces' }, { name: 3 }])
      assert.match(refusalOf(feature), /"?name"?/);
  });

  it('cannot be added once fields are in use', async () => {
    await import('../../../src/keys/key/index.ts');
    assert.match(withFloor(LINE), /svc-api-floor: added too late/);
  });
});
