import assert from 'node:assert/strict';
import { DocumentReader } from '../../../src/features/apply/document-reader.ts';

describe('a document', () => {
  it('has its texts and lists read, and its faults named by place', () => {
    const reader = new DocumentReader();
    assert.equal(reader.text('a', ['x']), 'a');
    assert.deepEqual(reader.list(undefined, ['x']), []);
    assert.equal(reader.text(7, ['x', 1]), undefined);
    assert.deepEqual(reader.list('a', ['y']), []);
    const parse = ([item = '']: readonly unknown[]) =>
      item === 'b' ? { values: [], issues: [{ message: 'No b.' }] } : { values: [item], issues: [] };
    assert.deepEqual(reader.parsedList(['a', 'b', null, 7, 'a'], ['z'], parse), ['a']);
    assert.deepEqual(reader.parsedList([7, 7], ['z'], parse, false), [7]);
    assert.deepEqual(reader.knownFields({ known: 1, other: 2 }, ['m'], ['known']), { known: 1, other: 2 });
    assert.deepEqual(reader.issues, [
      { path: ['x', 1], message: 'An item of this list must be text. Quote it if YAML reads it as another type.' },
      { path: ['y'], message: 'The field "y" must be a list.' },
      { path: ['z', 1], message: 'No b.' },
      { path: ['z', 2], message: 'An item of this list is empty. Leave it out, or give it a value.' },
      { path: ['z', 3], message: 'An item of this list must be text. Quote it if YAML reads it as another type.' },
      { path: ['m', 'other'], ofField: true, message: '"other" is not a field. The fields here are known.' },
    ]);
  });

  it('has a misspelled field read as the one that was meant, and nothing said that follows from it', () => {
    const reader = new DocumentReader();
    const fields = reader.knownFields({ pth: 7 }, ['m'], ['path', 'name']);
    reader.text(fields.path, ['m', 'path']);
    reader.missing(['m'], 'name');
    assert.deepEqual(reader.ownIssues, [
      { path: ['m', 'pth'], ofField: true, message: '"pth" is not a field. Did you mean "path"?' },
      { path: ['m'], message: 'The field "name" is missing.' },
    ]);
  });

  it('lacks no field where an unknown one may stand for it', () => {
    const reader = new DocumentReader();
    reader.knownFields({ location: '/' }, ['m'], ['path']);
    reader.missing(['m'], 'path');
    assert.deepEqual(
      reader.ownIssues.map(({ message }) => message),
      ['"location" is not a field. The fields here are path.'],
    );
  });

  it('that is hopeless is not read to its end', () => {
    const reader = new DocumentReader();
    let parsed = 0;
    const parse = () => {
      parsed += 1;
      return { values: [], issues: [{ message: 'Wrong.' }] };
    };
    for (const field of ['a', 'b']) reader.parsedList(Array.from({ length: 5000 }, String), [field], parse);
    assert.deepEqual([parsed, reader.issues.length], [1000, 1000]);
  });
});
