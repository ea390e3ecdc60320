{# dbt's own query of a test, with a log line for each sample that the test reads: a sampled test can
   prove a failure, never a pass. A package's own `materialization test` calls it too. #}
{% macro qbeast__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) -%}
  {%- for note in adapter.qbeast_sample_notes(sql, model, graph) -%}
    {% do log(model.name ~ ' ' ~ note, info=true) %}
  {%- endfor -%}
  {{ default__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) }}
{%- endmacro %}
