import { checkbox, confirm, input, password, search, select } from '@inquirer/prompts';
import { listSize, type Prompts } from './prompt.ts';
import { searchCheckbox } from './search-checkbox.ts';

const ON_STDERR = { output: process.stderr } as const;

/** Lists that are drawn anew with each key. No key chooses all. */
export const RICH_PROMPTS: Prompts = {
  input: (question) => input(question, ON_STDERR),
  secret: (message) => password({ message }, ON_STDERR),
  confirm: (message) => confirm({ message, default: false }, ON_STDERR),
  select: (question) => select({ ...question, pageSize: listSize() }, ON_STDERR),
  checkbox: (question) =>
    checkbox({ ...question, pageSize: listSize(), shortcuts: { all: null, invert: null } }, ON_STDERR),
  search: (question) => search({ ...question, pageSize: listSize() }, ON_STDERR),
  searchMany: (question) => searchCheckbox(question, ON_STDERR),
};
