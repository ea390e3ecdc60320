{# dbt run-operation convert_to_qbeast --args '{table: raw.events, columns_to_index: [ts, user_id]}'
   Takes a table by name or path (delta.`/path`, parquet.`/path`), or a model, whose configuration then
   supplies the columns. No data file is rewritten. #}
{% macro convert_to_qbeast(table=none, columns_to_index=none, cube_size=none, sample_key=none, slices=none, models=none) %}
  {{ qbeast_run_operation('convert_to_qbeast', {
      'table': table, 'columns_to_index': columns_to_index, 'cube_size': cube_size,
      'sample_key': sample_key, 'slices': slices, 'models': models}) }}
{% endmacro %}
