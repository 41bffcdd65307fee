/** How many letters have to be changed, put in or taken out to make one word of another (Levenshtein). */
export function distance(left, right) {
  const table = [];
  for (let row = 0; row <= left.length; row += 1) {
    table.push([row]);
    for (let column = 1; column <= right.length; column += 1) table[row].push(row === 0 ? column : 0);
  }
  for (let row = 1; row <= left.length; row += 1)
    for (let column = 1; column <= right.length; column += 1) {
      const other = left.charAt(row - 1) === right.charAt(column - 1) ? 0 : 1;
      table[row][column] = Math.min(table[row - 1][column] + 1, table[row][column - 1] + 1, table[row - 1][column - 1] + other);
    }
  return table[left.length][right.length];
}
